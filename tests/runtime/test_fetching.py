"""The consumer's thread: what it does to aiokafka's fetches, with aiokafka's own parsing."""

from __future__ import annotations

import asyncio
import collections
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

import msgpack
import pytest
from aiokafka.consumer.fetcher import Fetcher, FetchResult, PartitionRecords
from aiokafka.record._crecords import DefaultRecordBatchBuilder, MemoryRecords
from aiokafka.structs import ConsumerRecord
from faust.types import TP

from loopstream.policy.deployment import Deployment
from loopstream.runtime.app import create_app
from loopstream.runtime.hardening.consumer import BatchConsumer
from loopstream.runtime.hardening.fetching import RECOVERING_WAIT_MS, WAIT_MS, FetchThread
from loopstream.runtime.rows import POSITION_HEADER, MemoryRows, Merge
from loopstream.runtime.settings import WorkerSettings
from loopstream.wire.connection import Connection
from tests.faults.chain import ChainFold, marker_key, row_position

EVENTS = TP("p.events", 0)
CHANGELOG = TP("p.worker-runs-changelog", 0)

Rows = list[tuple[bytes, bytes | None, list[tuple[str, bytes | None]]]]


def row(last_offset: int) -> bytes:
    return bytes(msgpack.packb([1, 0, last_offset, 0, None]))


class Assignment:
    """Everything is assigned, and read from its beginning."""

    active = True
    paused = False
    position = 0

    def state_value(self, _tp: Any) -> Assignment:
        return self

    def consumed_to(self, position: int) -> None:
        self.position = position


class Subscriptions:
    reassignment_in_progress = False

    @contextlib.contextmanager
    def fetch_context(self) -> Iterator[None]:
        yield


def fetched(tp: TP, rows: Rows) -> FetchResult:
    """What a fetch of these records leaves behind."""
    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 2**20)
    for offset, (key, value, headers) in enumerate(rows):
        builder.append(offset, 0, key, value, headers)
    batches = MemoryRecords(bytes(builder.build()))
    parse, result = cast("Any", PartitionRecords), cast("Any", FetchResult)
    records = parse(tp, batches, [], 0, None, None, True, 0)
    return cast(
        "FetchResult",
        result(tp, assignment=Assignment(), partition_records=records, backoff=0.1),
    )


@pytest.fixture
async def fetcher() -> Fetcher:
    fetcher = object.__new__(Fetcher)
    fetcher._loop = asyncio.get_running_loop()
    fetcher._closed = False
    fetcher._records = collections.OrderedDict()
    fetcher._fetch_waiters = set()
    fetcher._subscriptions = Subscriptions()
    fetcher._wait_consume_future = None
    return fetcher


@pytest.fixture
async def thread(fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FetchThread]:
    settings = WorkerSettings(connection=Connection(), deployment=Deployment(prefix="p"))
    app = create_app(settings, 1, ChainFold, marker_key, row_position)
    app.finalize()
    consumer = cast("BatchConsumer", app.consumer)
    consumer.resume_flow()

    class Client:
        _closed = False
        _fetcher = fetcher
        _max_poll_records = None

    thread = cast("FetchThread", consumer._thread)
    thread._consumer = cast("Any", Client())

    async def here(fun: Any, *args: Any, **kwargs: Any) -> Any:
        return await fun(*args, **kwargs)

    monkeypatch.setattr(thread, "call_thread", here)
    yield thread
    thread.thread_loop.close()


HEADERS: list[tuple[str, bytes | None]] = [(POSITION_HEADER, b"9")]


async def test_changelog_records_stay_as_they_were_read(
    fetcher: Fetcher, thread: FetchThread
) -> None:
    fetcher._records[CHANGELOG] = fetched(
        CHANGELOG,
        [(b"a", row(8), []), (b"b", row(9), []), (b"a", None, HEADERS), (b"b", row(2), [])],
    )
    fetcher._records[EVENTS] = fetched(EVENTS, [(b"e", b"event", [])])
    records = await thread.getmany({CHANGELOG, EVENTS}, 10.0)
    assert not any(isinstance(record, ConsumerRecord) for record in records[CHANGELOG])
    assert [type(record) for record in records[EVENTS]] == [ConsumerRecord]
    rows = MemoryRows()
    merge = Merge(rows, row_position)
    merge.apply(records[CHANGELOG])
    assert {key: rows.get(key) for key in rows} == {b"b": row(9)}
    assert (rows.applied, merge.better) == (3, {b"b"})


async def test_also_those_that_are_waited_for(fetcher: Fetcher, thread: FetchThread) -> None:
    waiting = asyncio.create_task(thread.getmany({CHANGELOG}, 60.0))
    while not fetcher._fetch_waiters:
        await asyncio.sleep(0)
    fetcher._records[CHANGELOG] = fetched(CHANGELOG, [(b"a", row(1), [])])
    for waiter in list(fetcher._fetch_waiters):
        waiter.set_result(None)
    (record,) = (await waiting)[CHANGELOG]
    assert not isinstance(record, ConsumerRecord)
    assert (record.offset, record.key, record.value) == (0, b"a", row(1))


async def test_nothing_comes(fetcher: Fetcher, thread: FetchThread) -> None:
    assert await thread.getmany({CHANGELOG}, 0.01) == {}
    await asyncio.sleep(0)
    assert fetcher._fetch_waiters == set()


async def test_errors_that_fetches_wait_for_are_told(fetcher: Fetcher, thread: FetchThread) -> None:
    waiting = asyncio.create_task(thread.getmany({CHANGELOG}, 60.0))
    while not fetcher._fetch_waiters:
        await asyncio.sleep(0)
    for waiter in list(fetcher._fetch_waiters):
        waiter.set_exception(RuntimeError("not authorized"))
    with pytest.raises(RuntimeError, match="not authorized"):
        await waiting


async def test_no_fetch_while_the_flow_is_stopped(fetcher: Fetcher, thread: FetchThread) -> None:
    fetcher._records[CHANGELOG] = fetched(CHANGELOG, [(b"a", row(1), [])])
    thread.consumer.stop_flow()
    assert await thread.getmany({CHANGELOG}, 60.0) == {}
    assert CHANGELOG in fetcher._records


async def test_fetches_are_shorter_in_a_recovery(fetcher: Fetcher, thread: FetchThread) -> None:
    # With upstream's 1.5 s an empty fetch for the events stood before those for the changelogs.
    for recovering, wait_ms in ((True, RECOVERING_WAIT_MS), (False, WAIT_MS)):
        thread.app.in_recovery = recovering
        await thread.getmany({EVENTS}, 0.0)
        assert fetcher._fetch_max_wait_ms == wait_ms


async def test_the_first_fetch_is_short_too(thread: FetchThread) -> None:
    made = thread._create_worker_consumer(thread.app.transport)
    made._closed = True  # it was never open
    assert made._fetch_max_wait_ms == WAIT_MS
