"""Table recovery: in batches, monotone, complete, and in an order that skips nothing.

Answers:

* Upstream resumes the partitions, then seeks, then clears its queues: what was fetched between is
  lost (faust-streaming#596, #216, #217, #221, #223). Here: seek, then resume.
* A step that times out counts as "service stopped" and ends recovery for ever, in silence
  (faust-streaming#21, #176). Here it is an error.
* Records of unknown partitions were applied to the previous table, and errors swallowed
  (``_slurp_changelogs``; faust-streaming#155). Here nothing reads that queue.
* The newest record wins upstream, also a zombie's. Here the store keeps the row with the highest
  last offset, and better rows are asserted again (`RowStore.apply`).
* Each start slept for a second. Here it does not.
* Rows of lost partitions stayed in memory. Here they go, once their offsets are forgotten.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, cast

from faust.tables.manager import TableManager
from faust.tables.recovery import RebalanceAgain, Recovery, ServiceStopped
from faust.types import TP
from mode import Service

if TYPE_CHECKING:
    from loopstream.runtime.store import RowStore

Opening = Callable[[], Awaitable[None]]


class RecoveryTimeoutError(Exception):
    """A step of table recovery did not end in time."""


class BatchRecovery(Recovery):
    """Faust's recovery with batches pushed in by the consumer."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._sought: set[TP] = set()

    @property
    def store(self) -> RowStore:
        """The one table's rows."""
        (table,) = self.tables.values()
        return cast("RowStore", table.data)

    @Service.task
    async def _slurp_changelogs(self) -> None:
        await self.wait_until_stopped()

    async def on_rebalance(
        self,
        assigned: set[TP],
        revoked: set[TP],
        newly_assigned: set[TP],
        generation_id: int = 0,
    ) -> None:
        """Forget what is lost: first the offsets (upstream), then the rows."""
        self._sought.clear()
        await super().on_rebalance(assigned, revoked, newly_assigned, generation_id)
        if generation_id == self.app.consumer_generation_id:
            self.store.keep_only({tp.partition for tp in self.active_tps | self.standby_tps})

    async def _seek_offsets(
        self, consumer: Any, tps: set[TP], offsets: Counter[TP], title: str
    ) -> None:
        if not consumer.flow_active:
            # The old fetch must come home before the position moves.
            await consumer.wait_for_stopped_flow()
        await super()._seek_offsets(consumer, tps, offsets, title)
        if title == "active":
            self.signal_recovery_end.clear()
        self._sought |= tps

    def apply_records(self, tp: TP, records: list[Any]) -> None:
        """Apply consecutive changelog records of one partition; ends recovery with the last."""
        if tp not in self._sought:
            return
        active = tp in self.active_tps
        offsets = self.active_offsets if active else self.standby_offsets
        seen = offsets.get(tp)
        if seen is not None and records[0].offset <= seen:
            records = [record for record in records if record.offset > seen]
        if records:
            self.store.apply(tp.partition, records)
            offsets[tp] = records[-1].offset
            received = (
                self._active_events_received_at if active else self._standby_events_received_at
            )
            received[tp] = self._last_flush_at = time.monotonic()
        self._maybe_end()

    def _maybe_end(self) -> None:
        if self.in_recovery and not self.need_recovery():
            self._set_recovery_ended()
            self.signal_recovery_end.set()
        if (
            not self.tables.standbys_ready
            and self.standby_tps
            and not self.standby_remaining_total()
        ):
            self.tables.on_standbys_ready()

    async def _wait(self, coro: Any, timeout: Any = None) -> None:  # noqa: ASYNC109  # upstream's
        result = await self.wait_first(
            coro,
            self.signal_recovery_start,  # type: ignore[arg-type]
            timeout=timeout,
        )
        if result.stopped:
            if self.should_stop or self.crashed:
                raise ServiceStopped
            raise RecoveryTimeoutError(f"a step of table recovery took more than {timeout} s")
        done: list[Any] = list(result.done)
        if self.signal_recovery_start in done:
            raise RebalanceAgain

    async def on_recovery_completed(self, generation_id: int = 0) -> None:
        """Open the partitions, then let the flow go: upstream's steps in an order that holds."""
        app, consumer = self.app, self.app.consumer
        await app.on_rebalance_complete.send()
        self._set_recovery_ended()
        if app.consumer_generation_id != generation_id:
            return  # another rebalance is on its way here
        assignment = consumer.assignment()
        if assignment:
            await self._wait(consumer.perform_seek(), timeout=app.conf.broker_request_timeout)
        await self._wait(app.open_partitions())  # type: ignore[attr-defined]
        if app.consumer_generation_id != generation_id:
            return
        self.completed.set()
        app.flow_control.resume()
        consumer.resume_partitions({tp for tp in assignment if not self._is_changelog_tp(tp)})
        consumer.resume_flow()
        await app._fetcher.maybe_start()  # type: ignore[attr-defined]  # noqa: SLF001
        self.tables.on_actives_ready()
        if not app.assignor.assigned_standbys():
            self.tables.on_standbys_ready()
        app.on_rebalance_end()
        self.log.info("Worker ready")


class BatchTableManager(TableManager):
    """Faust's table manager with `BatchRecovery`."""

    _recovery: BatchRecovery | None = None

    async def on_start(self) -> None:
        """Subscribe and recover; upstream gives agents a second to define tables, ours is there."""
        if not self.should_stop:
            await self._update_channels()
            await self.recovery.start()

    @property
    def recovery(self) -> BatchRecovery:
        """The recovery service, made on first use."""
        if self._recovery is None:
            self._recovery = BatchRecovery(self.app, self, beacon=self.beacon, loop=self.loop)
        return self._recovery
