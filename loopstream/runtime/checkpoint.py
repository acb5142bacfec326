"""The checkpoint: what makes "nothing lost, effects once" true.

The order is everything (CHECKPOINTS.md):

1. snapshot of each partition's position and packed rows, without an await in between, then of the
   output marks: what was put out since by partitions that went on is waited for as well;
2. wait until all verdicts and dead letters of the snapshot are durable;
3. same assignment still? if not, abandon: the next owner replays;
4. rows to the changelog, each into its events partition, then into the store; marker row, then
   seal last;
5. same assignment still? then the offsets may be committed. Faust's commit waits for the strict
   producer first, so an offset is never committed before its rows are durable.

Verdict before state: were the row durable first, a crash between would make the replay skip the
event, and its verdict would never be sent.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import orjson

from loopstream.runtime.changelog import Audit
from loopstream.runtime.hardening.stall import StallGuard
from loopstream.runtime.inlet import ChannelInlet
from loopstream.runtime.lanes import Lane, Lanes
from loopstream.runtime.outbox import Outbox
from loopstream.runtime.ports import ChangelogEnds, Done, Generation, SendRecord
from loopstream.runtime.rows import POSITION_HEADER
from loopstream.runtime.seal import SEAL_KEY, Seal, pack_seal
from loopstream.runtime.stats import Stats
from loopstream.runtime.sweep import Sweep
from loopstream.runtime.topics import Topics

SWEEP_INTERVAL_S: Final = 5.0
# How long writing may keep the loop: heartbeats, signs of life and fetches wait for it.
_BREATH_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class Cut:
    """One partition's part of a snapshot."""

    lane: Lane
    next_offset: int
    rows: list[tuple[bytes, bytes]]
    summaries: list[tuple[str, Any]]


class Checkpointer:
    """Takes checkpoints, one at a time; the agent may go on applying meanwhile."""

    def __init__(
        self,
        lanes: Lanes,
        outbox: Outbox,
        inlet: ChannelInlet,
        guard: StallGuard,
        stats: Stats,
        topics: Topics,
        *,
        send: SendRecord,
        done: Done,
        generation: Generation,
        sweep: Sweep,
        audit: Audit,
        changelog_ends: ChangelogEnds,
        max_live_runs: int,
        report: Callable[[float, int, int], None] | None = None,
    ) -> None:
        self._lanes = lanes
        self._outbox = outbox
        self._inlet = inlet
        self._guard = guard
        self._stats = stats
        self._topics = topics
        self._send = send
        self._done = done
        self._generation = generation
        self._sweep = sweep
        self._audit = audit
        self._changelog_ends = changelog_ends
        self._max_live_runs = max_live_runs
        self._report = report
        self._next_sweep = 0.0
        self._lock = asyncio.Lock()
        self.last = time.monotonic()

    async def take(self) -> bool:
        """Take one checkpoint; False if the assignment went meanwhile.

        Raises:
            Exception: something was refused, or the worker slept; nothing of it may be committed.
        """
        async with self._lock:
            started = time.monotonic()
            epoch = self._inlet.epoch
            cuts = await self._snapshot(epoch)
            if cuts is None:
                self._stats.checkpoints_abandoned += 1
                return False
            mark = self._outbox.mark()
            self._inlet.make_room()
            await self._outbox.confirmed(mark)
            for cut in cuts:
                if not await self._write(cut, epoch):
                    self._stats.checkpoints_abandoned += 1
                    return False
            if epoch != self._inlet.epoch:
                self._stats.checkpoints_abandoned += 1
                return False
            for cut in cuts:  # no await since the test
                cut.lane.done = max(cut.lane.done, cut.next_offset)
                if cut.next_offset:
                    self._done(cut.lane.number, cut.next_offset)
            self._lanes.shrink(self._max_live_runs)
            self.last = time.monotonic()
            self._stats.checkpoints += 1
            self._stats.checkpoint_seconds = self.last - started
            self._stats.measures.checkpoint_seconds.observe(self.last - started)
            if self._report is not None:
                rows = sum(len(cut.rows) for cut in cuts)
                self._report(self.last - started, rows, len(cuts))
            await self._collect_garbage(epoch)
            await self._settle_seals(epoch)
            return True

    async def _snapshot(self, epoch: int) -> list[Cut] | None:
        """Everything that the checkpoint will write; None if the assignment went meanwhile.

        Packing thousands of rows takes its time, so others get their turn between partitions.
        """
        cuts: list[Cut] = []
        for lane in self._lanes:
            if lane.next_offset > lane.done or lane.fold.dirty:
                if cuts:
                    await asyncio.sleep(0)
                    if epoch != self._inlet.epoch:
                        return None
                rows, offset = lane.fold.take_rows(), lane.next_offset
                cuts.append(Cut(lane, offset, rows, list(lane.fold.summaries())))
        return cuts

    async def _write(self, cut: Cut, epoch: int) -> bool:
        lane = cut.lane
        breath = _Breath()
        for key, row in cut.rows:
            await breath.take()
            if epoch != self._inlet.epoch:
                return False
            self._guard.check()
            await lane.changelog.write(key, row)
            lane.rows.put(key, row)
        if epoch != self._inlet.epoch:
            return False
        lane.sealed = max(lane.sealed, cut.next_offset - 1)
        await self._seal(lane)
        for scope, summary in cut.summaries:
            await breath.take()
            if epoch != self._inlet.epoch:
                return False
            value = orjson.dumps(summary)
            await self._send(self._topics.runs, scope.encode(), value, lane.number)
        for _, row in cut.rows:
            self._stats.measures.row_bytes.observe(len(row))
        self._stats.rows += len(cut.rows)
        self._stats.summaries += len(cut.summaries)
        return True

    async def _seal(self, lane: Lane) -> None:
        seal = pack_seal(Seal(lane.number, lane.sealed, lane.rows.count, self._generation()))
        lane.rows.put(SEAL_KEY, seal)
        await lane.changelog.seal(SEAL_KEY, seal)

    async def _collect_garbage(self, epoch: int) -> None:
        """Erase dead rows; the seal that does not count on them goes out first."""
        if self.last < self._next_sweep:
            return
        self._next_sweep = self.last + SWEEP_INTERVAL_S
        for lane in self._lanes:
            dead = self._sweep.dead(lane)
            for key, _ in dead:
                lane.rows.discard(key)
            if not dead:
                continue
            await self._seal(lane)
            for key, last_offset in dead:
                if epoch != self._inlet.epoch:
                    return
                position = [(POSITION_HEADER, str(last_offset).encode())]
                await lane.changelog.write(key, None, position)
                self._stats.tombstones += 1
            await self._seal(lane)

    async def audit(self) -> None:
        """Look for rows that others wrote to our changelogs, and write ours over them."""
        async with self._lock:
            epoch = self._inlet.epoch
            await self._settle_seals(epoch)
            ends = await self._changelog_ends(self._lanes.numbers)
            for lane in self._lanes:
                offsets = lane.changelog.foreign_tail(ends.get(lane.number, 0))
                if offsets is not None:
                    await self._repair(lane, offsets, epoch)

    async def settle(self) -> None:
        """After a flush: durable rows remember how much of the changelog they hold."""
        async with self._lock:
            await self._settle_seals(self._inlet.epoch)

    async def _settle_seals(self, epoch: int) -> None:
        for lane in self._lanes:
            offsets = lane.changelog.foreign()
            if offsets is not None:
                await self._repair(lane, offsets, epoch)
            # A restart with durable rows reads the changelog from here on.
            lane.rows.applied = lane.changelog.known - 1

    async def _repair(self, lane: Lane, offsets: range, epoch: int) -> None:
        better = await self._audit.better_rows(lane.changelog, lane.rows, offsets)
        if epoch != self._inlet.epoch:
            return
        for key, row in better:
            await lane.changelog.write(key, row)
        self._stats.reasserted += len(better)
        if better:
            await self._seal(lane)


class _Breath:
    """Lets the loop's other tasks have their turn in the midst of a long piece of work."""

    def __init__(self) -> None:
        self._until = time.monotonic() + _BREATH_S

    async def take(self) -> None:
        """Wait for the others, if it is time."""
        if time.monotonic() >= self._until:
            await asyncio.sleep(0)
            self._until = time.monotonic() + _BREATH_S
