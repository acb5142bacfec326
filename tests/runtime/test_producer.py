"""The strict producer against the stock one, on a client that confirms when told."""

from __future__ import annotations

import asyncio
from typing import Any

import faust
import pytest
from faust.exceptions import ProducerSendError
from faust.transport.drivers.aiokafka import Producer

from loopstream.runtime.hardening.producer import StrictProducer


class Client:
    """As much of aiokafka's producer as Faust's asks for."""

    def __init__(self) -> None:
        self.futures: list[asyncio.Future[Any]] = []

    async def send(self, topic: str, value: bytes, **_: Any) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.futures.append(future)
        return future

    async def flush(self) -> None:
        # As aiokafka's: waits, and looks at no result.
        if self.futures:
            await asyncio.wait(self.futures)


def producer_of(kind: type[Producer]) -> tuple[Producer, Client]:
    app = faust.App("test", broker="kafka://127.0.0.1:1", store="memory://")
    producer = kind(app.transport)
    client = Client()
    producer._producer = client  # type: ignore[assignment]
    return producer, client


async def send(producer: Producer) -> None:
    await producer.send("t", b"k", b"v", 0, None, None)


async def test_stock_faust_flushes_over_a_refused_record() -> None:
    producer, client = producer_of(Producer)
    await send(producer)
    client.futures[0].set_exception(RuntimeError("refused"))
    await producer.flush()  # no error: the offsets would be committed now


async def test_a_refused_record_fails_this_flush_and_every_later_one() -> None:
    producer, client = producer_of(StrictProducer)
    await send(producer)
    client.futures[0].set_exception(RuntimeError("refused"))
    await asyncio.sleep(0)
    await send(producer)
    for _ in range(2):
        with pytest.raises(ProducerSendError, match="refused"):
            await producer.flush()


async def test_flush_waits_for_what_is_outstanding_now_and_no_more() -> None:
    producer, client = producer_of(StrictProducer)
    await send(producer)
    flushing = asyncio.create_task(producer.flush())
    await asyncio.sleep(0)
    await send(producer)
    assert not flushing.done()
    client.futures[0].set_result(None)
    await asyncio.wait_for(flushing, 5)
    assert not client.futures[1].done()


async def test_a_cancelled_send_counts_as_refused() -> None:
    producer, client = producer_of(StrictProducer)
    await send(producer)
    client.futures[0].cancel()
    with pytest.raises(ProducerSendError):
        await producer.flush()


async def test_idempotence_is_on() -> None:
    producer, _ = producer_of(StrictProducer)
    assert producer._settings_extra() == {"acks": "all", "enable_idempotence": True}
