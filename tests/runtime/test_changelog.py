"""The owner notices when somebody else wrote to its changelog, and keeps the better rows."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import msgpack
import pytest

from loopstream.partition import row_position
from loopstream.runtime.changelog import Audit, Changelog
from loopstream.runtime.rows import POSITION_HEADER, MemoryRows


@dataclass
class Written:
    offset: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]] = field(default_factory=list)


class Log:
    """A changelog partition that confirms at once."""

    def __init__(self) -> None:
        self.records: list[Written] = []

    async def send(
        self, topic: str, key: bytes | None, value: bytes | None, partition: int, headers: Any = ()
    ) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        record = Written(len(self.records), key, value, list(headers or ()))
        self.records.append(record)
        future.set_result(record)
        return future

    async def read(self, partition: int, first: int, last: int) -> list[Any]:
        return self.records[first : last + 1]


def row(last_offset: int) -> bytes:
    return bytes(msgpack.packb([1, 0, last_offset, 0, None]))


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def changelog(log: Log) -> Changelog:
    return Changelog("c", 0, log.send, next_offset=0)


async def test_our_own_records_are_no_surprise(changelog: Changelog) -> None:
    for _ in range(3):
        await changelog.write(b"a", row(1))
        await changelog.seal(b"\xffseal", row(1))
        assert changelog.foreign() is None
    assert changelog.known == 6
    assert changelog.foreign_tail(6) is None


async def test_somebody_elses_are(changelog: Changelog, log: Log) -> None:
    await changelog.write(b"a", row(1))
    await log.send("c", b"b", row(0), 0)
    await changelog.seal(b"\xffseal", row(1))
    assert changelog.foreign() == range(3)
    assert changelog.known == 3
    await changelog.seal(b"\xffseal", row(2))
    assert changelog.foreign() is None


async def test_an_unconfirmed_seal_says_nothing_yet(changelog: Changelog) -> None:
    assert changelog.foreign() is None
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    changelog._seal = (future, 1)
    assert changelog.foreign() is None
    future.set_result(Written(0, b"", b""))
    changelog._sent = 1
    assert changelog.foreign() is None
    assert changelog.known == 1


async def test_an_idle_owner_finds_them_at_the_end(changelog: Changelog, log: Log) -> None:
    await changelog.write(b"a", row(1))
    assert changelog.foreign_tail(9) is None, "not while it writes itself"
    await changelog.seal(b"\xffseal", row(1))
    assert changelog.foreign() is None
    assert changelog.foreign_tail(2) is None
    assert changelog.foreign_tail(4) == range(2, 4)
    assert changelog.foreign_tail(4) is None


async def test_only_rows_that_are_better_are_written_again(changelog: Changelog, log: Log) -> None:
    rows = MemoryRows()
    for key in (b"older", b"same", b"newer", b"erased", b"operator"):
        rows.put(key, row(50))
    await log.send("c", b"older", row(10), 0)
    await log.send("c", b"same", row(50), 0)
    await log.send("c", b"newer", row(90), 0)
    await log.send("c", b"unknown", row(90), 0)
    await log.send("c", b"erased", None, 0, [(POSITION_HEADER, b"10")])
    await log.send("c", b"operator", None, 0)
    audit = Audit(row_position, log.read)
    better = await audit.better_rows(changelog, rows, range(6))
    assert sorted(better) == [(b"erased", row(50)), (b"older", row(50))]
