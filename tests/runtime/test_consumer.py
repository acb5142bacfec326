"""The batch consumer, with the fetch in the test's hands."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import pytest
from faust.transport.drivers.aiokafka import Consumer
from faust.types import TP

from loopstream.policy.deployment import Deployment
from loopstream.runtime.app import WorkerApp, create_app
from loopstream.runtime.hardening.consumer import BatchConsumer
from loopstream.runtime.settings import WorkerSettings
from loopstream.wire.connection import Connection
from tests.faults.chain import ChainFold, marker_key, row_position

EVENTS = TP("p.events", 0)
CHANGELOG = TP("p.worker-runs-changelog", 0)
OTHER = TP("other", 0)


@dataclass
class Record:
    offset: int


class Taker:
    """An inlet that takes everything."""

    topic = EVENTS.topic

    def __init__(self) -> None:
        self.open = True
        self.batches: list[tuple[int, list[int], int]] = []
        self.revoked = 0
        self.failures: list[BaseException] = []

    def accepts(self, partition: int) -> bool:
        return self.open

    async def wait_room(self, timeout_s: float) -> None:
        await asyncio.sleep(0)

    async def deliver(self, partition: int, records: list[Any], generation: int) -> None:
        self.batches.append((partition, [record.offset for record in records], generation))

    def revoke(self) -> None:
        self.revoked += 1

    def fail(self, reason: BaseException) -> None:
        self.failures.append(reason)


class Fetch:
    """Replaces the fetcher: answers with ``records`` when the gate opens."""

    def __init__(self, records: Mapping[TP, list[Any]]) -> None:
        self.records = records
        self.asked: list[frozenset[TP]] = []
        self.timeouts: list[float] = []
        self.gate = asyncio.Event()
        self.asked_for: Any = None

    async def __call__(
        self,
        active_partitions: Any,
        timeout: float,  # noqa: ASYNC109  # upstream's signature
        *_args: Any,
        **_kwargs: Any,
    ) -> Mapping[TP, list[Any]]:
        self.timeouts.append(timeout)
        self.asked_for = active_partitions
        self.asked.append(frozenset(active_partitions))
        await self.gate.wait()
        return self.records


@pytest.fixture
async def app() -> WorkerApp:
    settings = WorkerSettings(connection=Connection(), deployment=Deployment(prefix="p"))
    app = create_app(settings, 1, ChainFold, marker_key, row_position)
    app.finalize()
    return app


@pytest.fixture
async def consumer(app: WorkerApp, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[BatchConsumer]:
    consumer = cast("BatchConsumer", app.consumer)
    assert isinstance(consumer, BatchConsumer)
    monkeypatch.setattr(BatchConsumer, "inlet", Taker())
    monkeypatch.setattr(consumer, "highwater", lambda _tp: 0)
    app.consumer_generation_id = 1
    consumer._active_partitions = {EVENTS, CHANGELOG, OTHER}
    consumer.resume_flow()
    yield consumer
    consumer._thread.thread_loop.close()


def fetch_of(consumer: Consumer, records: Mapping[TP, list[Any]]) -> Fetch:
    fetch = Fetch(records)
    vars(consumer)["_getmany"] = fetch
    return fetch


def taker(consumer: BatchConsumer) -> Taker:
    return cast("Taker", consumer.inlet)


async def test_stock_faust_hands_out_the_live_set_of_partitions(consumer: BatchConsumer) -> None:
    fetch = fetch_of(consumer, {})
    waiting = asyncio.create_task(Consumer._wait_next_records(consumer, 1.0))
    await asyncio.sleep(0)
    consumer._active_partitions.clear()  # a revoke
    assert fetch.asked_for == set(), "and an empty set means: all partitions"
    assert consumer.not_waiting_next_records.is_set(), "nobody can wait for this fetch"
    fetch.gate.set()
    await waiting


async def test_a_revoke_does_not_widen_a_fetch_in_flight(consumer: BatchConsumer) -> None:
    fetch = fetch_of(consumer, {})
    waiting = asyncio.create_task(consumer._wait_next_records(1.0))
    await asyncio.sleep(0)
    consumer._active_partitions.clear()
    assert fetch.asked_for == {EVENTS, CHANGELOG, OTHER}
    assert not consumer.not_waiting_next_records.is_set()
    fetch.gate.set()
    await waiting
    assert consumer.not_waiting_next_records.is_set()


async def test_nothing_wanted_is_never_an_empty_request(consumer: BatchConsumer) -> None:
    fetch = fetch_of(consumer, {})
    consumer._active_partitions = {EVENTS}
    taker(consumer).open = False
    records, _ = await consumer._wait_next_records(1.0)
    assert records == {}
    assert fetch.asked == []


async def test_no_room_leaves_the_events_out_and_the_others_in(consumer: BatchConsumer) -> None:
    fetch = fetch_of(consumer, {})
    fetch.gate.set()
    taker(consumer).open = False
    await consumer._wait_next_records(1.0)
    assert fetch.asked == [frozenset({CHANGELOG, OTHER})]


async def test_a_fetch_that_finds_nothing_soon_comes_home(consumer: BatchConsumer) -> None:
    # It is waited for before recovery seeks; with Faust's second an idle worker took that longer.
    fetch = fetch_of(consumer, {})
    fetch.gate.set()
    for is_open in (True, False):
        taker(consumer).open = is_open
        await consumer._wait_next_records(1.0)
        await consumer._wait_next_records(0.0)
    wanting_all, _, held_back, _ = fetch.timeouts
    assert fetch.timeouts == [wanting_all, 0.0, held_back, 0.0]
    assert held_back < wanting_all < 1.0


async def test_batches_go_to_the_inlet_and_the_rest_takes_fausts_path(
    consumer: BatchConsumer,
) -> None:
    fetch = fetch_of(consumer, {EVENTS: [Record(5), Record(6)], OTHER: [Record(1)]})
    fetch.gate.set()
    records, _ = await consumer._wait_next_records(1.0)
    assert taker(consumer).batches == [(0, [5, 6], 1)]
    assert records == {OTHER: [Record(1)]}
    assert consumer._read_offset[EVENTS] == 7


async def test_what_was_read_before_is_trimmed(consumer: BatchConsumer) -> None:
    consumer._read_offset[EVENTS] = 6
    fetch_of(consumer, {EVENTS: [Record(5), Record(6)]}).gate.set()
    await consumer._wait_next_records(1.0)
    assert taker(consumer).batches == [(0, [6], 1)]


async def test_a_fetch_that_comes_home_after_a_revoke_is_dropped(consumer: BatchConsumer) -> None:
    fetch = fetch_of(consumer, {EVENTS: [Record(5)], OTHER: [Record(1)]})
    waiting = asyncio.create_task(consumer._wait_next_records(1.0))
    await asyncio.sleep(0)
    consumer.stop_flow()
    fetch.gate.set()
    for _ in range(5):
        await asyncio.sleep(0)
    assert not waiting.done(), "it must not return: getmany would seek during the rebalance"
    consumer.resume_flow()
    records, _ = await waiting
    assert records == {}
    assert taker(consumer).batches == []


async def test_a_fetch_of_another_generation_ends_the_worker(consumer: BatchConsumer) -> None:
    fetch = fetch_of(consumer, {EVENTS: [Record(5)]})
    waiting = asyncio.create_task(consumer._wait_next_records(1.0))
    await asyncio.sleep(0)
    consumer.app.consumer_generation_id = 2
    fetch.gate.set()
    await waiting
    assert taker(consumer).batches == []
    assert len(taker(consumer).failures) == 1


async def test_only_checkpoints_say_what_may_be_committed(consumer: BatchConsumer) -> None:
    consumer._committed_offset[EVENTS] = 10
    assert consumer._filter_committable_offsets([]) == {}
    consumer.done(EVENTS, 10)
    assert consumer._filter_committable_offsets([]) == {}
    consumer.done(EVENTS, 15)
    assert consumer._filter_committable_offsets([]) == {EVENTS: 15}


async def test_a_revoke_forgets_offsets_and_live_states_first_of_all(
    consumer: BatchConsumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer.done(EVENTS, 15)
    seen: list[tuple[int, dict[TP, int]]] = []

    async def upstream(self: Consumer, revoked: set[TP]) -> None:
        seen.append((taker(consumer).revoked, dict(consumer._done)))

    monkeypatch.setattr(Consumer, "on_partitions_revoked", upstream)
    await consumer.on_partitions_revoked({EVENTS})
    assert seen == [(1, {})]
