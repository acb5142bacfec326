"""A worker's parts with the chain fold and a broker of futures, without Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

import msgpack
import pytest

from loopstream.policy.deployment import Deployment
from loopstream.runtime.changelog import Changelog
from loopstream.runtime.core import Core
from loopstream.runtime.lanes import Lane
from loopstream.runtime.rows import MemoryRows
from loopstream.runtime.settings import WorkerSettings
from loopstream.wire.connection import Connection
from tests.faults.chain import ChainFold, marker_key, row_position


@dataclass
class Sent:
    """One record handed to the producer."""

    topic: str
    key: bytes | None
    value: bytes | None
    partition: int
    headers: list[tuple[str, bytes]]
    confirmation: asyncio.Future[Any]


@dataclass
class FakeRecord:
    offset: int
    value: bytes | None
    timestamp: int = 1
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()


class Channel:
    """What the inlet puts its batches on."""

    def __init__(self) -> None:
        self.batches: list[Any] = []

    async def put(self, batch: Any) -> None:
        self.batches.append(batch)


@dataclass
class Bench:
    """A core on a fake producer. ``log`` holds what happened, in order."""

    core: Core
    sent: list[Sent]
    done: dict[int, int]
    log: list[str]
    channel: Channel
    failures: list[BaseException] = field(default_factory=list)

    def lane(self, number: int = 0) -> Lane:
        fold = ChainFold(
            self.core.settings.deployment, number, 1, MemoryRows(), self.core.sources, None
        )
        changelog = Changelog(self.core.topics.changelog, number, self.core.opener._send, 0)
        lane = Lane(number, fold, MemoryRows(), changelog, next_offset=0, done=0)
        fold._rows = lane.rows
        self.core.lanes.open(lane)
        self.core.inlet.open(self.core.lanes.numbers)
        return lane

    async def feed(self, *values: Any, number: int = 0, start: int | None = None) -> None:
        """Deliver events and let the applier have them."""
        lane = self.core.lanes.get(number)
        assert lane is not None
        first = lane.next_offset if start is None else start
        records = [FakeRecord(first + at, msgpack.packb(value)) for at, value in enumerate(values)]
        await self.core.inlet.deliver(number, records, 1)
        await self.core.applier.consume(self.channel.batches[-1])

    def confirm(self, topic: str) -> None:
        for record in self.sent:
            if record.topic.endswith(topic) and not record.confirmation.done():
                record.confirmation.set_result(None)

    def to(self, topic: str) -> list[Sent]:
        return [record for record in self.sent if record.topic.endswith(topic)]


@pytest.fixture
async def bench() -> Bench:
    sent: list[Sent] = []
    log: list[str] = []
    done: dict[int, int] = {}

    async def send(
        topic: str,
        key: bytes | None,
        value: bytes | None,
        partition: int,
        headers: Iterable[tuple[str, bytes]] | None = None,
    ) -> asyncio.Future[Any]:
        await asyncio.sleep(0)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        sent.append(Sent(topic, key, value, partition, list(headers or ()), future))
        log.append(f"send {topic.rsplit('.', 1)[1]}")
        return future

    def mark_done(partition: int, next_offset: int) -> None:
        done[partition] = next_offset
        log.append(f"done {partition}:{next_offset}")

    async def changelog_ends(partitions: AbstractSet[int]) -> dict[int, int]:
        return {}

    channel = Channel()
    failures: list[BaseException] = []
    core = Core(
        WorkerSettings(
            connection=Connection(),
            deployment=Deployment(prefix="p"),
            max_dirty_rows=100,
            max_pending_verdicts=50,
            max_buffered_bytes=300_000,
        ),
        1,
        ChainFold,
        marker_key,
        row_position,
        channel=channel,  # type: ignore[arg-type]
        store=lambda: pytest.fail("not opened here"),
        send=send,
        done=mark_done,
        generation=lambda: 1,
        committed=done.get,
        changelog_ends=changelog_ends,
        fail=failures.append,
    )
    return Bench(core, sent, done, log, channel, failures)
