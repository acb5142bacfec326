"""Applies batches to folds: in order, in slices, and only while the assignment stands."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from loopstream.errors import CorruptStateError
from loopstream.runtime.hardening.continuity import FirstAtOrAfter, explain_jump
from loopstream.runtime.hardening.stall import StallGuard
from loopstream.runtime.inlet import Batch, ChannelInlet
from loopstream.runtime.lanes import Lane, Lanes
from loopstream.runtime.sources import Sources
from loopstream.runtime.stats import Stats

SLICE_RECORDS: Final = 500
SLICE_S: Final = 0.02
# A look at whether there is room, where nobody tells of it: verdicts are confirmed one by one.
_ROOM_S: Final = 0.05
Collect = Callable[[Lane], None]


@dataclass(slots=True)
class Rest:
    """A batch, and how many of its records are applied."""

    batch: Batch
    at: int = 0


class Applier:
    """Feeds batches to the folds.

    Between two slices timers, commits and rebalance callbacks get their turn; within a slice
    nothing is awaited, so a checkpoint's snapshot always lies between two records.
    """

    def __init__(
        self,
        lanes: Lanes,
        inlet: ChannelInlet,
        sources: Sources,
        guard: StallGuard,
        stats: Stats,
        *,
        collect: Collect,
        first_at_or_after: FirstAtOrAfter,
    ) -> None:
        self._lanes = lanes
        self._inlet = inlet
        self._sources = sources
        self._guard = guard
        self._stats = stats
        self._collect = collect
        self._first_at_or_after = first_at_or_after
        self.closing = False
        self._waiting: dict[int, deque[Rest]] = {}

    async def consume(self, batch: Batch) -> None:
        """Apply what waits, until that is done or another batch has come; at least one slice.

        Partitions take turns, so that a long batch of one holds up no other.

        Raises:
            ContinuityError: records are missing.
            StalledError: the worker slept.
        """
        self._inlet.taken(batch)
        self._waiting.setdefault(batch.partition, deque()).append(Rest(batch))
        while self._waiting:
            partition = next(iter(self._waiting))
            rests = self._waiting.pop(partition)
            await self._go_on(rests)
            if rests:
                self._waiting[partition] = rests  # behind the others
            if self._inlet.waiting > 0:
                return

    async def _go_on(self, rests: deque[Rest]) -> None:
        """Apply a slice of a partition's oldest batch, or drop it once its assignment is gone."""
        rest = rests[0]
        batch, records, at = rest.batch, rest.batch.records, rest.at
        lane = self._lanes.get(batch.partition)
        if lane is None or batch.epoch != self._inlet.epoch or self.closing:
            self._stats.stale_batches += 1
            rests.popleft()
            return
        if self._inlet.full:
            # What is buffered could change more rows than memory has room for.
            await self._inlet.wait_room(_ROOM_S)
            return
        self._guard.check()
        rest.at = self._apply_slice(lane, records, at)
        if rest.at == at:
            rest.at += await self._overcome(lane, records[at], batch)
        else:
            await asyncio.sleep(0)
        self._inlet.applied(batch, records[at : rest.at])
        if rest.at == len(records):
            rests.popleft()

    def _apply_slice(self, lane: Lane, records: list[Any], start: int) -> int:
        """Apply from ``start`` on; the index of the first record that was not applied."""
        apply, started = lane.fold.apply, time.monotonic()
        deadline = started + SLICE_S
        end = min(start + SLICE_RECORDS, len(records))
        at = start
        while at < end:
            record = records[at]
            if record.offset != lane.next_offset or not apply(record):
                break
            lane.next_offset = record.offset + 1
            at += 1
            if not at & 31 and time.monotonic() > deadline:
                break
        if applied := at - start:
            self._stats.records += applied
            took = (time.monotonic() - started) / applied
            self._stats.measures.step_seconds.observe(took, applied)
        self._collect(lane)
        return at

    async def _overcome(self, lane: Lane, record: Any, batch: Batch) -> int:
        """What stopped a slice at its first record: a jump, or a source not yet read.

        Returns:
            Number of records applied here.
        """
        if record.offset != lane.next_offset:
            jump = await explain_jump(
                lane.number, lane.next_offset, record.offset, self._first_at_or_after
            )
            if batch.epoch == self._inlet.epoch:
                lane.next_offset = record.offset
                self._stats.jumps += jump
            return 0
        await self._sources.catch_up()
        if batch.epoch != self._inlet.epoch:
            return 0
        with self._sources.certain():
            # Everything that was in the source when the record was written has been read now.
            if not lane.fold.apply(record):
                where = f"partition {lane.number}, offset {record.offset}"
                raise CorruptStateError("the fold refuses to go on.", where=where)
        lane.next_offset = record.offset + 1
        self._stats.records += 1
        self._collect(lane)
        return 1
