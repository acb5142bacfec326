"""Without Kafka the dashboard neither keeps anybody waiting nor hides why."""

from __future__ import annotations

import asyncio
import socket

import pytest

from loopstream.config import load
from loopstream.errors import KafkaUnreachableError
from loopstream.web.app import serve

pytestmark = pytest.mark.slow


@pytest.fixture
def nobody() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


def test_it_gives_up_as_soon_as_no_broker_answered(nobody: str) -> None:
    settings = load({"bootstrap": nobody, "web.port": "0", "timeout_s": "1"}).settings
    told: list[str] = []
    with pytest.raises(KafkaUnreachableError):
        asyncio.run(serve(settings, asyncio.Event(), told.append))
    assert not told


def test_it_stops_while_it_still_waits_for_kafka(nobody: str) -> None:
    settings = load({"bootstrap": nobody, "web.port": "0", "timeout_s": "60"}).settings
    told: list[str] = []

    async def stopped() -> None:
        stop = asyncio.Event()
        asyncio.get_running_loop().call_later(0.5, stop.set)
        # Far below the time for which it would wait for Kafka, on however slow a machine.
        await asyncio.wait_for(serve(settings, stop, told.append), 25)

    asyncio.run(stopped())
    assert not told
