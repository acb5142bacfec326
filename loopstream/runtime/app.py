"""The Faust application: ``faust -A loopstream.runtime.app worker``, or `run_worker`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any, NoReturn, cast

import faust
from faust.types import TP, AppT
from faust.types.transports import ConductorT, ProducerT, TransportT

from loopstream.config import load
from loopstream.errors import EXIT_OK, EXIT_RESTART, LoopstreamError
from loopstream.partition import marker_key, row_position
from loopstream.runtime.admin import check_topics
from loopstream.runtime.core import Core
from loopstream.runtime.fold import FoldFactory, RowPosition
from loopstream.runtime.hardening.consumer import BatchConsumer
from loopstream.runtime.hardening.deadline import StopDeadline
from loopstream.runtime.hardening.exits import leave
from loopstream.runtime.hardening.producer import StrictProducer
from loopstream.runtime.hardening.recovery import BatchTableManager
from loopstream.runtime.hardening.upstream import check_upstream
from loopstream.runtime.hardening.watchdog import Watchdog
from loopstream.runtime.loop import collect_rarely, new_event_loop
from loopstream.runtime.monitor import Monitor
from loopstream.runtime.opening import Start
from loopstream.runtime.options import RAW, faust_settings, rows_opener
from loopstream.runtime.ports import ChangelogEnds
from loopstream.runtime.product import partition_factory
from loopstream.runtime.settings import WorkerSettings, worker_settings
from loopstream.runtime.store import RowStore, RunTable
from loopstream.runtime.topics import TABLE


class WorkerApp(faust.App):
    """Faust with the parts of `hardening` in the places that Faust offers for them."""

    core: Core
    settings: WorkerSettings
    events_topic: Any
    observer: Monitor

    @property
    def inlet(self) -> Any:
        """Taker of event batches (asked for by the consumer)."""
        return self.core.inlet

    def _new_transport(self) -> TransportT:
        transport = super()._new_transport()
        transport.Consumer = BatchConsumer  # type: ignore[misc]
        return transport

    def _new_producer(self) -> ProducerT:
        return StrictProducer(self.transport, loop=self.loop, beacon=self.beacon)

    def _new_conductor(self) -> ConductorT:
        # Subscribed without an agent of its own: batches reach the agent over a channel.
        conductor = super()._new_conductor()
        conductor.add(self.events_topic)
        return conductor

    def _create_directories(self) -> None:
        """Faust's folders stay unmade: the durable store has its own."""

    def _crash(self, reason: BaseException) -> NoReturn:
        leave(reason)

    async def on_start(self) -> None:
        """Read the control sources before any partition is used."""
        await super().on_start()
        try:
            self.observer.open()
            await self.core.sources.start()
        except Exception as error:  # noqa: BLE001  # whatever it is, the worker can't start
            leave(error)
        self.add_future(self.core.sources.follow())
        self.add_future(self.core.outbox.run())
        self.add_future(self._watch())

    async def on_started_init_extra_tasks(self) -> None:
        """Start the clockwork once the first recovery is over."""
        await super().on_started_init_extra_tasks()
        self.add_future(self.core.tick())
        self.add_future(self.core.keep_time())

    async def on_stop(self) -> None:
        """Drain to a checkpoint and commit it, before Faust lets go of the partitions."""
        deadline = StopDeadline(self.settings.stop_timeout_s)
        deadline.start()
        try:
            await self.core.close()
            if len(self.core.lanes):
                await self.consumer.commit()
                await self.core.checkpointer.settle()
        except Exception as error:  # noqa: BLE001  # a failed last checkpoint is a crash
            leave(error)
        deadline.committed = True
        self.core.reporter.close()
        await self.core.sources.stop()
        await super().on_stop()
        self.observer.close()

    async def open_partitions(self) -> None:
        """Open what was assigned; called at the end of table recovery, before the flow resumes."""
        consumer = cast("BatchConsumer", self.consumer)
        mine = [tp for tp in consumer.assignment() if tp.topic == self.core.topics.events]
        if not mine:
            self.core.settled()
            return
        recovered = cast("BatchTableManager", self.tables).recovery.active_offsets
        earliest = await consumer.earliest_offsets(*mine)
        starts = {
            tp: Start(
                tp.partition,
                consumer.committed_offset(tp),
                earliest.get(tp) or 0,
                recovered[TP(self.core.topics.changelog, tp.partition)] + 1,
                self.core.opener.sealed(tp.partition),
            )
            for tp in mine
        }
        # What continuity expects is what is fetched, whatever position a fetch left behind.
        await consumer.seek_wait({tp: start.offset for tp, start in starts.items()})
        await self.core.open(starts.values())

    async def _watch(self) -> None:
        settings, core = self.settings, self.core
        recovery = Watchdog("table recovery", settings.recovery_timeout_s)
        work = Watchdog("event processing", settings.progress_timeout_s)
        while not self.should_stop:
            offsets = cast("BatchTableManager", self.tables).recovery.active_offsets
            recovered = (self.rebalancing_count, tuple(offsets.items()))
            recovering = self.in_recovery or self.rebalancing
            worked, lags = (core.stats.records, core.stats.checkpoints), self._lags()
            self.observer.observe((recovered, worked), waiting=recovering or lags)
            recovery.observe(recovered, waiting=recovering)
            work.observe(worked, waiting=lags)
            await self.sleep(1.0)

    def _lags(self) -> bool:
        core, consumer = self.core, self.consumer
        if core.lanes.behind:
            return True
        for lane in core.lanes:
            with suppress(Exception):  # between two assignments there is no high water
                end = consumer.highwater(TP(core.topics.events, lane.number))
                if (end or 0) > lane.next_offset:
                    return True
        return False


def create_app(
    settings: WorkerSettings,
    partitions: int,
    factory: FoldFactory,
    key_of_marker: Callable[[int], bytes],
    position: RowPosition,
) -> WorkerApp:
    """Build the application; nothing is connected yet.

    Args:
        settings: of this process.
        partitions: of the events topic, as `check_topics` found it.
        factory: makes the fold of a partition.
        key_of_marker: key of a partition's marker row.
        position: reads (partition, last offset) from the head of a row.

    Raises:
        UpstreamError: the installed Faust is not the one that the hardening was written for.
    """
    check_upstream()
    app = WorkerApp(settings.group, **faust_settings(settings, partitions))
    app.settings = settings
    channel = app.channel(value_type=None, maxsize=0)
    table = cast(
        "RunTable", app.Table(TABLE, key_type=bytes, value_type=bytes, partitions=partitions)
    )
    table.position = position
    table.open_rows = rows_opener(settings)
    app.core = Core(
        settings,
        partitions,
        factory,
        key_of_marker,
        position,
        channel=channel,
        store=lambda: cast("RowStore", table.data),
        send=_sender(app),
        done=_committer(app),
        generation=lambda: app.consumer_generation_id,
        committed=_committed(app),
        changelog_ends=_changelog_ends(app),
        fail=leave,
    )
    app.observer = Monitor(app)
    app.events_topic = app.topic(app.core.topics.events, partitions=partitions, **RAW)

    @app.agent(channel, name="events")
    async def events(batches: Any) -> None:
        try:
            async for batch in batches.noack():
                await app.core.applier.consume(batch)
        except Exception as error:  # noqa: BLE001  # what leaves an agent counts as processed
            leave(error)

    return app


def _sender(app: AppT) -> Any:
    async def send(
        topic: str,
        key: bytes | None,
        value: bytes | None,
        partition: int,
        headers: Iterable[tuple[str, bytes]] | None = None,
    ) -> asyncio.Future[Any]:
        given = None if headers is None else list(headers)
        sent = await app.producer.send(topic, key, value, partition, None, given)
        return cast("asyncio.Future[Any]", sent)

    return send


def _committer(app: WorkerApp) -> Callable[[int, int], None]:
    def done(partition: int, next_offset: int) -> None:
        consumer = cast("BatchConsumer", app.consumer)
        consumer.done(TP(app.core.topics.events, partition), next_offset)

    return done


def _committed(app: WorkerApp) -> Callable[[int], int | None]:
    def committed(partition: int) -> int | None:
        consumer = cast("BatchConsumer", app.consumer)
        return consumer.committed_offset(TP(app.core.topics.events, partition))

    return committed


def _changelog_ends(app: WorkerApp) -> ChangelogEnds:
    async def ends(partitions: AbstractSet[int]) -> dict[int, int]:
        tps = [TP(app.core.topics.changelog, number) for number in partitions]
        if not tps:
            return {}
        return {tp.partition: end for tp, end in (await app.consumer.highwaters(*tps)).items()}

    return ends


def run_worker(
    settings: WorkerSettings,
    factory: FoldFactory,
    key_of_marker: Callable[[int], bytes],
    position: RowPosition,
) -> int:
    """Run a worker until it is told to stop; the process exit code.

    Raises:
        LoopstreamError: the broker, the topics or the installed Faust are not as needed.
    """
    connection, prefix = settings.connection, settings.deployment.prefix
    partitions = check_topics(
        connection, prefix, settings.partitions, timeout_s=settings.start_timeout_s
    )
    loop = new_event_loop()
    asyncio.set_event_loop(loop)
    app = create_app(settings, partitions, factory, key_of_marker, position)
    collect_rarely()
    worker = faust.Worker(
        app, loop=loop, loglevel=settings.log_level, quiet=True, redirect_stdouts=False
    )
    worker.spinner = None  # it draws on stdout, terminal or not
    try:
        worker.execute_from_commandline()
    except SystemExit as done:
        return EXIT_RESTART if done.code else EXIT_OK


def __getattr__(name: str) -> Any:
    """``app``: made on first use, from the environment and ``loopstream.toml``."""
    if name != "app":
        raise AttributeError(name)
    try:
        settings = worker_settings(load().settings)
        partitions = check_topics(
            settings.connection,
            settings.deployment.prefix,
            settings.partitions,
            timeout_s=settings.start_timeout_s,
        )
        factory = partition_factory(settings)
        made = create_app(settings, partitions, factory, marker_key, row_position)
    except LoopstreamError as error:
        sys.stderr.write(f"loopstream: {error}\n")
        raise SystemExit(error.exit_code) from None
    globals()["app"] = made
    return made
