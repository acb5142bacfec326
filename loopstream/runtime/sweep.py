"""Garbage collection of dead rows: tombstones, once nothing can need the row any more.

A row is dead when the fold says so (idle too long, or past the grace after its end); whether it is
erased changes no verdict. It is erased only after the commit has passed its last offset: until
then a replay would start the run anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from loopstream.runtime.fold import RESERVED, RowPosition
from loopstream.runtime.lanes import Lane
from loopstream.runtime.ports import Committed

ROWS_PER_SWEEP: Final = 2_000


class Sweep:
    """Walks through the rows of a lane, some at a time, round and round."""

    def __init__(self, position: RowPosition, committed: Committed) -> None:
        self._position = position
        self._committed = committed
        self._walks: dict[int, Iterator[bytes]] = {}

    def dead(self, lane: Lane) -> list[tuple[bytes, int]]:
        """Keys of dead rows among the next few, and their last offsets; their states are gone."""
        passed = self._committed(lane.number) or 0
        found: list[tuple[bytes, int]] = []
        for key in self._next(lane):
            row = lane.rows.get(key)
            if row is None or not lane.fold.expired(row):
                continue
            _, last_offset = self._position(row)
            if last_offset < passed and lane.fold.forget(key.decode()):
                found.append((key, last_offset))
        return found

    def _next(self, lane: Lane) -> list[bytes]:
        walk = self._walks.get(lane.number)
        if walk is None:
            walk = self._walks[lane.number] = iter([*lane.rows])
        keys = [key for _, key in zip(range(ROWS_PER_SWEEP), walk, strict=False)]
        if len(keys) < ROWS_PER_SWEEP:
            del self._walks[lane.number]
        return [key for key in keys if not key.startswith(RESERVED)]
