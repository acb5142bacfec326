"""The seal: last row of a checkpoint in each partition. It proves that recovery got everything."""

from __future__ import annotations

from dataclasses import dataclass

import msgpack

from loopstream.errors import CorruptStateError
from loopstream.runtime.fold import RESERVED

SEAL_KEY = RESERVED + b"seal"
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Seal:
    """What a partition's rows must hold at least."""

    partition: int
    last_offset: int
    """Offset of the last event record that is in the rows."""
    rows: int
    """Number of scope rows."""
    generation: int
    """Group generation of the writer."""


def pack_seal(seal: Seal) -> bytes:
    """The seal as a row; its head is that of every row (`loopstream.state.pack.RowHead`)."""
    head = [_VERSION, seal.partition, seal.last_offset, 0, None]
    return bytes(msgpack.packb([*head, seal.rows, seal.generation]))


def unpack_seal(row: bytes) -> Seal:
    """Read a seal.

    Raises:
        CorruptStateError: the bytes are no seal.
    """
    try:
        version, partition, last_offset, _, _, rows, generation = msgpack.unpackb(row)
    except (TypeError, ValueError, msgpack.UnpackException) as error:
        raise CorruptStateError(f"a seal does not decode ({type(error).__name__}).") from error
    if version != _VERSION:
        raise CorruptStateError(
            f"a seal has version {version}, this worker knows {_VERSION}.",
            hint="Is an older worker taking over from a newer one?",
        )
    return Seal(partition, last_offset, rows, generation)


def check_seal(partition: int, row: bytes | None, rows: int, committed: int | None) -> Seal | None:
    """Hold the recovered rows of a partition against its seal and its committed offset.

    Returns:
        The seal; None if nothing was ever committed or sealed.

    Raises:
        CorruptStateError: rows are missing; recover again.
    """
    seal = None if row is None else unpack_seal(row)
    where = f"changelog partition {partition}"
    hint = "The worker recovers again; if this repeats, the changelog has lost records."
    if seal is None:
        if not committed:
            return None  # nothing was promised yet
        raise CorruptStateError(
            f"offset {committed} is committed but there is no seal.", where=where, hint=hint
        )
    if seal.last_offset < (committed or 0) - 1:
        raise CorruptStateError(
            f"the seal is at {seal.last_offset}, the commit at {committed}.", where=where, hint=hint
        )
    if rows < seal.rows:
        raise CorruptStateError(
            f"{rows} rows were recovered, the seal says {seal.rows}.", where=where, hint=hint
        )
    return seal
