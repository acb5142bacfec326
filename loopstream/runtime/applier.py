"""Applies batches to folds: in order, in slices, and only while the assignment stands."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
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
Collect = Callable[[Lane], None]
Kick = Callable[[], Awaitable[None]]


class Applier:
    """Feeds one batch after the other to the folds.

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

    async def consume(self, batch: Batch) -> None:
        """Apply a batch, or what is left of it when the assignment goes.

        Raises:
            ContinuityError: records are missing.
            StalledError: the worker slept.
        """
        records = batch.records
        at = 0
        while at < len(records):
            lane = self._lanes.get(batch.partition)
            if lane is None or batch.epoch != self._inlet.epoch or self.closing:
                self._stats.stale_batches += 1
                return
            self._guard.check()
            before = at
            at = self._apply_slice(lane, records, at)
            if at == before:
                at += await self._overcome(lane, records[at], batch)
            else:
                await asyncio.sleep(0)
            self._inlet.applied(batch, at - before)

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
