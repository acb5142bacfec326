"""Table recovery: order, timeouts, batches; stock Faust shown beside it where it differs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, cast

import msgpack
import pytest
from faust.tables.manager import TableManager
from faust.tables.recovery import RebalanceAgain, Recovery, ServiceStopped
from faust.types import TP

from loopstream.policy.deployment import Deployment
from loopstream.runtime.app import WorkerApp, create_app
from loopstream.runtime.hardening.recovery import (
    BatchRecovery,
    BatchTableManager,
    RecoveryTimeoutError,
)
from loopstream.runtime.settings import WorkerSettings
from loopstream.wire.connection import Connection
from tests.faults.chain import ChainFold, marker_key, row_position

EVENTS = TP("p.events", 0)
CHANGELOG = TP("p.worker-runs-changelog", 0)


@dataclass
class Record:
    offset: int
    key: bytes
    value: bytes | None
    headers: list[tuple[str, bytes]] = field(default_factory=list)


class Kafka:
    """A consumer that writes down what it is told."""

    def __init__(self, log: list[str]) -> None:
        self.log = log
        self.flow_active = True

    def assignment(self) -> set[TP]:
        return {EVENTS, CHANGELOG}

    async def perform_seek(self) -> None:
        self.log.append("seek")

    async def wait_for_stopped_flow(self) -> None:
        self.log.append("fetch came home")

    async def seek_wait(self, offsets: dict[TP, int]) -> None:
        self.log.append(f"seek {list(offsets.values())}")

    def resume_partitions(self, tps: set[TP]) -> None:
        self.log.append("resume partitions")

    def resume_flow(self) -> None:
        self.log.append("resume flow")


class Assignor:
    def assigned_standbys(self) -> set[TP]:
        return set()


@pytest.fixture
def log() -> list[str]:
    return []


@pytest.fixture
async def app(log: list[str], monkeypatch: pytest.MonkeyPatch) -> WorkerApp:
    settings = WorkerSettings(connection=Connection(), deployment=Deployment(prefix="p"))
    app = create_app(settings, 1, ChainFold, marker_key, row_position)
    app.finalize()
    app.consumer = cast("Any", Kafka(log))
    app.consumer_generation_id = 1

    async def open_partitions() -> None:
        log.append("open")

    class Fetcher:
        async def maybe_start(self) -> None:
            log.append("fetch")

    monkeypatch.setattr(app, "open_partitions", open_partitions)
    vars(app)["_fetcher"] = Fetcher()
    monkeypatch.setattr(app, "on_rebalance_end", lambda: None)
    vars(app)["assignor"] = Assignor()
    monkeypatch.setattr(app.flow_control, "resume", lambda: log.append("clear queues"))
    return app


@pytest.fixture
async def recovery(app: WorkerApp) -> BatchRecovery:
    return cast("BatchTableManager", app.tables).recovery


async def test_stock_faust_resumes_before_it_seeks(recovery: BatchRecovery, log: list[str]) -> None:
    # What is fetched between is cleared with the queues: faust-streaming#596.
    await Recovery.on_recovery_completed(recovery, 1)
    assert log.index("resume partitions") < log.index("seek") < log.index("clear queues")


async def test_partitions_are_sought_opened_and_only_then_resumed(
    recovery: BatchRecovery, log: list[str]
) -> None:
    await recovery.on_recovery_completed(1)
    assert log == ["seek", "open", "clear queues", "resume partitions", "resume flow", "fetch"]


async def test_nothing_is_resumed_for_a_generation_that_is_over(
    recovery: BatchRecovery, log: list[str]
) -> None:
    recovery.app.consumer_generation_id = 2
    await recovery.on_recovery_completed(1)
    assert log == []


async def test_stock_faust_takes_a_timeout_for_a_stop(recovery: BatchRecovery) -> None:
    # ... and leaves recovery for ever, without a word.
    with pytest.raises(ServiceStopped):
        await Recovery._wait(recovery, asyncio.sleep(60), timeout=0.01)


async def test_a_timeout_is_an_error(recovery: BatchRecovery) -> None:
    with pytest.raises(RecoveryTimeoutError, match=r"more than 0\.01 s"):
        await recovery._wait(asyncio.sleep(60), timeout=0.01)


async def test_another_rebalance_interrupts(recovery: BatchRecovery) -> None:
    recovery.signal_recovery_start.set()
    with pytest.raises(RebalanceAgain):
        await recovery._wait(asyncio.sleep(60), timeout=10)


async def test_a_seek_waits_for_the_old_fetch(recovery: BatchRecovery, log: list[str]) -> None:
    kafka = cast("Kafka", recovery.app.consumer)
    kafka.flow_active = False
    offsets: Any = {CHANGELOG: -1}
    recovery.signal_recovery_end.set()
    await recovery._seek_offsets(kafka, {CHANGELOG}, offsets, "active")
    assert log == ["fetch came home", "seek [0]"]
    assert not recovery.signal_recovery_end.is_set()


def row(last_offset: int) -> bytes:
    return bytes(msgpack.packb([1, 0, last_offset, 0, None]))


async def started(recovery: BatchRecovery, end: int) -> None:
    recovery.active_tps.add(CHANGELOG)
    recovery.active_offsets[CHANGELOG] = -1
    recovery.active_highwaters[CHANGELOG] = end
    recovery._set_recovery_started()
    await recovery._seek_offsets(
        cast("Any", recovery.app.consumer), {CHANGELOG}, recovery.active_offsets, "active"
    )


async def test_recovery_ends_with_the_last_record(recovery: BatchRecovery) -> None:
    await started(recovery, end=2)
    recovery.apply_records(CHANGELOG, [Record(0, b"a", row(1)), Record(1, b"b", row(2))])
    assert not recovery.signal_recovery_end.is_set()
    recovery.apply_records(CHANGELOG, [Record(1, b"b", row(2)), Record(2, b"a", row(9))])
    assert recovery.signal_recovery_end.is_set()
    assert recovery.store.rows(0).get(b"a") == row(9)
    assert recovery.store.rows(0).count == 2
    assert recovery.store.persisted_offset(CHANGELOG) == 2


async def test_records_that_come_before_the_seek_are_not_applied(recovery: BatchRecovery) -> None:
    recovery.active_tps.add(CHANGELOG)
    recovery.apply_records(CHANGELOG, [Record(0, b"a", row(1))])
    assert recovery.store.rows(0).get(b"a") is None


async def test_lost_partitions_lose_their_rows_and_kept_ones_keep_them(
    recovery: BatchRecovery, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (0, 1):
        recovery.store.rows(number).put(b"run", row(5))

    async def upstream(self: Recovery, *_args: Any) -> None:
        self.active_tps.add(CHANGELOG)

    monkeypatch.setattr(Recovery, "on_rebalance", upstream)
    await recovery.on_rebalance({CHANGELOG}, set(), set(), 1)
    assert recovery.store.rows(0).get(b"run") == row(5)
    assert recovery.store.rows(1).get(b"run") is None


async def test_a_start_does_not_sleep(app: WorkerApp, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    async def channels() -> None:
        done.append("channels")

    async def start() -> None:
        done.append("recovery")

    async def sleep(*_args: Any) -> None:
        done.append("slept")

    manager = cast("BatchTableManager", app.tables)
    monkeypatch.setattr(manager, "_update_channels", channels)
    monkeypatch.setattr(manager.recovery, "start", start)
    monkeypatch.setattr(manager, "sleep", sleep)
    await manager.on_start()
    assert done == ["channels", "recovery"]
    await TableManager.on_start(manager)
    assert done[2:] == ["slept", "channels", "recovery"]


async def test_only_checkpoints_write_rows(app: WorkerApp) -> None:
    (table,) = app.tables.values()
    with pytest.raises(TypeError, match="checkpoints only"):
        table.data[b"run"] = row(1)
