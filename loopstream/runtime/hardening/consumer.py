"""The consumer: whole batches from the fetcher to where they belong, and honest offsets.

Answers:

* Faust hands the live set of active partitions to the fetcher. A revoke empties it, and empty
  means "all", so a fetch in flight swallows changelog records that recovery has just sought to
  (seen in CHECKPOINTS.md; faust-streaming#74, #158). Here the set is frozen, never empty.
* ``not_waiting_next_records`` was set twice and never cleared, so nobody could wait for a fetch
  to come home (faust-streaming#596). Here it is cleared and set around the fetch.
* ``getmany`` seeks while a rebalance is under way if a fetch comes home during one. Here a fetch
  that comes home late is dropped, and the call returns only when the flow is active again.
* Offsets come from checkpoints alone: ack lists, gaps (faust-streaming#312, #606) and unacked
  messages play no part for the events topic.
* One task, lock, event object and queue step per record cost 25 times the work (SPEED.md).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast

from faust.transport.drivers.aiokafka import Consumer
from faust.types import TP

from loopstream.runtime.hardening.fetching import FetchThread

if TYPE_CHECKING:
    from loopstream.runtime.hardening.recovery import BatchRecovery

RecordMap = Mapping[TP, list[Any]]
_IDLE_S = 0.02
_PATIENCE_S = 0.2


class Inlet(Protocol):
    """Where batches of event records go."""

    topic: str

    def accepts(self, partition: int) -> bool:
        """Whether records of a partition can be taken now (it is open, and there is room)."""
        ...

    async def wait_room(self, timeout_s: float) -> None:
        """Wait until that may have changed."""
        ...

    async def deliver(self, partition: int, records: list[Any], generation: int) -> None:
        """Take a batch of consecutive records of one partition."""
        ...

    def revoke(self) -> None:
        """Forget all partitions: a rebalance has begun."""
        ...

    def fail(self, reason: BaseException) -> None:
        """Give up."""
        ...


class BatchConsumer(Consumer):
    """Faust's consumer with batch delivery for the events topic and the changelogs."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._done: dict[TP, int] = {}

    def _new_consumer_thread(self) -> FetchThread:
        return FetchThread(self, loop=self.loop, beacon=self.beacon)

    @property
    def inlet(self) -> Inlet:
        """Taker of the event batches."""
        return cast("Inlet", self.app.inlet)  # type: ignore[attr-defined]

    @property
    def recovery(self) -> BatchRecovery:
        """Taker of the changelog batches."""
        return cast("BatchRecovery", self.app.tables.recovery)  # type: ignore[attr-defined]

    def done(self, tp: TP, next_offset: int) -> None:
        """Everything before ``next_offset`` is in rows: Faust may commit it."""
        self._done[tp] = next_offset

    def committed_offset(self, tp: TP) -> int | None:
        """What the group had committed when this assignment was sought, or was committed since."""
        committed: int | None = self._committed_offset[tp]
        return committed

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Drop what was not checkpointed first of all, then follow Faust's order."""
        self.inlet.revoke()
        self._done.clear()
        await super().on_partitions_revoked(revoked)

    def _filter_committable_offsets(self, tps: Iterable[TP]) -> dict[TP, int]:
        offsets = super()._filter_committable_offsets(tps)
        for tp, next_offset in self._done.items():
            committed = self._committed_offset[tp]
            if committed is None or next_offset > committed:
                offsets[tp] = next_offset
        return offsets

    async def _wait_next_records(
        self,
        timeout: float,  # noqa: ASYNC109  # upstream's signature
    ) -> tuple[RecordMap | None, set[TP]]:
        await self._wait_flow()
        generation = self.app.consumer_generation_id
        active = self._get_active_partitions()
        wanted = frozenset(tp for tp in active if self._wants(tp))
        rest: dict[TP, list[Any]] = {}
        if wanted:
            # Those that are held back have soon been worked off: no long wait for the others.
            # Nor for all of them: after a rebalance, recovery waits for this call to come home.
            patience = _PATIENCE_S if len(wanted) == len(active) else _IDLE_S
            records = await self._fetch(wanted, min(timeout, patience))
            if self.flow_active and not self.should_stop:
                rest = await self._hand_out(records, generation)
        else:
            await self._idle(bool(active))
        if not self.flow_active:
            # Came home after a revoke: dropped, all partitions are sought anew.
            rest = {}
            await self._wait_flow()
        return (None if self.should_stop else rest), active

    def _wants(self, tp: TP) -> bool:
        return tp.topic != self.inlet.topic or self.inlet.accepts(tp.partition)

    async def _wait_flow(self) -> None:
        while not self.flow_active and not self.should_stop:
            await self.wait(self.can_resume_flow)  # type: ignore[arg-type]

    async def _idle(self, held_back: bool) -> None:
        if held_back:
            await self.inlet.wait_room(_IDLE_S)
        else:
            await self.sleep(_IDLE_S)

    async def _fetch(self, wanted: frozenset[TP], timeout_s: float) -> RecordMap:
        self.not_waiting_next_records.clear()
        try:
            return await self._getmany(cast("set[TP]", wanted), timeout_s)
        finally:
            self.not_waiting_next_records.set()

    async def _hand_out(self, records: RecordMap, generation: int) -> dict[TP, list[Any]]:
        """Deliver events and changelog records; what is neither takes Faust's own path."""
        changelogs = self.app.tables.changelog_topics
        rest: dict[TP, list[Any]] = {}
        for raw_tp, batch in records.items():
            tp = TP(*raw_tp)
            if tp.topic != self.inlet.topic and tp.topic not in changelogs:
                rest[tp] = batch
                continue
            if not self.flow_active:
                break  # a revoke came between two batches
            if generation != self.app.consumer_generation_id:
                self.inlet.fail(RuntimeError("a fetch survived a rebalance"))
                break
            if tp not in self._active_partitions:
                continue  # paused meanwhile: a changelog at the end of recovery
            self.app.monitor.track_tp_end_offset(tp, self.highwater(tp))
            if tp.topic == self.inlet.topic:
                await self._deliver(tp, batch, generation)
            else:
                self.recovery.apply_records(tp, batch)
                await asyncio.sleep(0)
        return rest

    async def _deliver(self, tp: TP, batch: list[Any], generation: int) -> None:
        read = self._read_offset[tp]
        if read is not None and batch[0].offset < read:
            batch = [record for record in batch if record.offset >= read]
        if batch:
            self._read_offset[tp] = batch[-1].offset + 1
            # Faust's "stream stopped processing" messages look here.
            self.app.monitor.stream_inbound_time[tp] = time.monotonic()
            await self.inlet.deliver(tp.partition, batch, generation)
