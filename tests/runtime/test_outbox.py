"""The outbox: order, confirmation up to a mark, sticky refusal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from loopstream.runtime.outbox import Message, Outbox


class Broker:
    """Confirms when told to."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.confirmations: list[asyncio.Future[Any]] = []
        self.open = asyncio.Event()
        self.open.set()

    async def send(
        self, topic: str, key: bytes | None, value: bytes, partition: int
    ) -> asyncio.Future[Any]:
        await self.open.wait()
        self.sent.append(value)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.confirmations.append(future)
        return future


@pytest.fixture
async def broker() -> Broker:
    return Broker()


@pytest.fixture
async def outbox(broker: Broker) -> AsyncIterator[Outbox]:
    outbox = Outbox(broker.send)
    task = asyncio.create_task(outbox.run())
    yield outbox
    task.cancel()
    with suppress(asyncio.CancelledError, RuntimeError):
        await task


def put(outbox: Outbox, value: bytes) -> None:
    outbox.put(Message("t", b"k", lambda: value, 0))


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_mark_waits_for_what_was_put_before_it_and_no_more(
    outbox: Outbox, broker: Broker
) -> None:
    put(outbox, b"1")
    put(outbox, b"2")
    mark = outbox.mark()
    waiting = asyncio.create_task(outbox.confirmed(mark))
    put(outbox, b"3")
    await settle()
    assert broker.sent == [b"1", b"2", b"3"]
    broker.confirmations[0].set_result(None)
    await settle()
    assert not waiting.done()
    broker.confirmations[1].set_result(None)
    await waiting
    assert outbox.pending == 1


async def test_a_mark_waits_for_what_was_not_even_sent(outbox: Outbox, broker: Broker) -> None:
    broker.open.clear()
    put(outbox, b"1")
    waiting = asyncio.create_task(outbox.confirmed(outbox.mark()))
    await settle()
    assert not waiting.done()
    broker.open.set()
    await settle()
    assert not waiting.done()
    broker.confirmations[0].set_result(None)
    await waiting


async def test_a_refusal_sticks(outbox: Outbox, broker: Broker) -> None:
    put(outbox, b"1")
    await settle()
    broker.confirmations[0].set_exception(RuntimeError("too large"))
    await settle()
    put(outbox, b"2")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="too large"):
            await outbox.confirmed(outbox.mark())


async def test_what_is_dropped_at_a_revoke_holds_nobody_up(outbox: Outbox, broker: Broker) -> None:
    broker.open.clear()
    for number in range(3):
        put(outbox, b"%d" % number)
    await settle()
    waiting = asyncio.create_task(outbox.confirmed(outbox.mark()))
    outbox.clear()
    broker.open.set()
    await settle()
    broker.confirmations[0].set_result(None)
    await waiting
    assert broker.sent == [b"0"]
    put(outbox, b"next")
    await settle()
    assert broker.sent == [b"0", b"next"]
