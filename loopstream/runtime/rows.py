"""The packed rows of one partition, and how late rows are kept out (monotone merge)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Protocol

from loopstream.runtime.fold import RESERVED, RowPosition

POSITION_HEADER = "position"
"""Header of a tombstone: the last offset of the row that it erases, decimal."""

# Length and version of the array, be its length one byte or three.
_ALIKE: Final = 4


class PartitionRows(Protocol):
    """Rows of one partition by key."""

    applied: int | None
    """Changelog offset up to which the rows are known; None: nothing was read yet."""

    @property
    def count(self) -> int:
        """Rows of scopes, without the reserved ones."""
        ...

    def get(self, key: bytes) -> bytes | None:
        """The row, or None."""
        ...

    def put(self, key: bytes, row: bytes) -> None:
        """Store a row."""
        ...

    def discard(self, key: bytes) -> None:
        """Erase a row, if it is there."""
        ...

    def __iter__(self) -> Iterator[bytes]:
        """All keys."""
        ...


class MemoryRows:
    """Rows in a dictionary; gone with the process, rebuilt from the changelog."""

    def __init__(self) -> None:
        self.applied: int | None = None
        self._rows: dict[bytes, bytes] = {}
        self._reserved: set[bytes] = set()
        self.get: Callable[[bytes], bytes | None] = self._rows.get
        """The row, or None."""

    @property
    def count(self) -> int:
        """Rows of scopes, without the reserved ones."""
        return len(self._rows) - len(self._reserved)

    def put(self, key: bytes, row: bytes) -> None:
        """Store a row."""
        self._rows[key] = row
        if key >= RESERVED:
            self._reserved.add(key)

    def discard(self, key: bytes) -> None:
        """Erase a row, if it is there."""
        self._rows.pop(key, None)
        self._reserved.discard(key)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._rows)


class Merge:
    """Applies changelog records so that the highest last offset wins, not the latest writer.

    ``better`` collects keys whose last record in the changelog is not the best one (a zombie wrote
    it): the owner writes the kept rows again after recovery, before compaction finds them.
    """

    def __init__(self, rows: PartitionRows, position: RowPosition) -> None:
        self._rows = rows
        self._position = position
        self.better: set[bytes] = set()

    def apply(self, records: Iterable[Any]) -> None:
        """Apply records (``key``, ``value``, ``offset``, ``headers``) in their order."""
        rows, better, position = self._rows, self.better, self._position
        get, put = rows.get, rows.put
        offset = rows.applied
        for record in records:
            key, row, offset = record.key, record.value, record.offset
            kept = get(key)
            if (
                kept is not None
                and not (row is not None and key < RESERVED and follows(row, kept))
                and kept != row
                and position(kept)[1] > position_of(record, position)
            ):
                better.add(key)
                continue
            if better:
                better.discard(key)
            if row is None:
                rows.discard(key)
            else:
                put(key, row)
        rows.applied = offset


def follows(row: bytes, kept: bytes) -> bool:
    """Whether the bytes alone tell that ``row`` is not older than ``kept``; False: look closer.

    Rows are msgpack arrays that begin with version, partition and last offset. Numbers in their
    shortest form are ordered as their bytes are, so of two rows of one partition that begin alike
    the greater one does not have the lower offset. (A negative offset would break that; only
    reserved rows, written before the first event, have one.)
    """
    return kept[:_ALIKE] == row[:_ALIKE] and kept <= row


def position_of(record: Any, position: RowPosition) -> int:
    """Last event offset that a changelog record (a row or a tombstone) speaks of."""
    if record.value is not None:
        return position(record.value)[1]
    for name, value in record.headers:
        if name == POSITION_HEADER and value.isdigit():
            return int(value)
    # A tombstone of somebody else's: an operator erased the row on purpose.
    return 2**63
