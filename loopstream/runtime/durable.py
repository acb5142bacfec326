"""Rows on disk (extra ``durable``): recovery then reads only what the changelog says since.

Always safe to delete: everything in it can be derived from the changelog. A row may be ahead of
the changelog (the process died between the two); it is never ahead of its verdicts, so the replay
from the commit skips its events and writes it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast

from rocksdict import Options, Rdict

from loopstream.errors import SettingsError
from loopstream.runtime.fold import RESERVED

_APPLIED: Final = RESERVED + b"\xffapplied"


class DurableRows:
    """Rows of one partition in a RocksDB of its own.

    RocksDB's log keeps the order of writes, so whatever survives a crash is a prefix of them:
    ``applied`` is written after the rows that it speaks of.

    Raises:
        SettingsError: the folder can't be opened, or another process has it.
    """

    def __init__(self, folder: Path, partition: int) -> None:
        path = folder / f"{partition}"
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._db: Rdict = Rdict(str(path), Options(raw_mode=True))
        except Exception as error:  # rocksdict has no error type of its own
            raise SettingsError(
                f"the durable store can't be opened: {error}.",
                where=str(path),
                hint="Each worker needs a datadir of its own.",
            ) from error
        stored = self._db.get(_APPLIED)
        self._applied = None if stored is None else int(stored)
        self.count = sum(1 for key in self if not key.startswith(RESERVED))

    @property
    def applied(self) -> int | None:
        """Changelog offset up to which the rows are known."""
        return self._applied

    @applied.setter
    def applied(self, offset: int | None) -> None:
        self._applied = offset
        if offset is not None:
            self._db[_APPLIED] = b"%d" % offset

    def get(self, key: bytes) -> bytes | None:
        """The row, or None."""
        row: bytes | None = self._db.get(key)
        return row

    def put(self, key: bytes, row: bytes) -> None:
        """Store a row."""
        if not key.startswith(RESERVED) and key not in self._db:
            self.count += 1
        self._db[key] = row

    def discard(self, key: bytes) -> None:
        """Erase a row, if it is there."""
        if key in self._db:
            del self._db[key]
            self.count -= not key.startswith(RESERVED)

    def __iter__(self) -> Iterator[bytes]:
        keys = cast("Iterator[bytes]", self._db.keys())
        return (key for key in keys if key != _APPLIED)

    def close(self) -> None:
        """Let go of the files."""
        self._db.close()
