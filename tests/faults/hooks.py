"""What is done to a worker from inside its process; product code has no such switches."""

from __future__ import annotations

import asyncio
import copy
import os
import resource
import signal
import time
from collections.abc import Callable
from typing import Any

from faust.types.transports import ProducerT
from yarl import URL

from loopstream.runtime.app import WorkerApp
from loopstream.runtime.hardening.producer import StrictProducer
from loopstream.runtime.seal import SEAL_KEY

POINTS = ("after the verdict", "between rows", "after the rows", "before the commit")
Send = Callable[..., Any]


def die_at(app: WorkerApp, point: str, count: int) -> None:
    """SIGKILL itself when a point of the checkpoint's order is reached for the n-th time."""
    core, seen = app.core, iter(range(count - 1, -1, -1))

    def watched(send: Send, hit: Callable[..., bool]) -> Send:
        async def forward(*args: Any) -> asyncio.Future[Any]:
            sent: asyncio.Future[Any] = await send(*args)
            if hit(*args) and not next(seen):
                await sent  # the broker has it; nothing that follows will be
                _die()
            return sent

        return forward

    if point == "after the verdict":
        core.outbox._send = watched(core.outbox._send, lambda *_: True)
    elif point == "between rows":
        core.opener._send = watched(
            core.opener._send, lambda topic, *_: topic == core.topics.changelog
        )
    elif point == "after the rows":
        core.opener._send = watched(core.opener._send, lambda _topic, key, *_: key == SEAL_KEY)
    elif point == "before the commit":
        done = core.checkpointer._done

        def mark(partition: int, next_offset: int) -> None:
            if not next(seen):
                _die()
            done(partition, next_offset)

        core.checkpointer._done = mark
    else:
        raise ValueError(point)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def limit_file_size(limit: int) -> None:
    """No file may grow beyond it: writes fail as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


def skew_clock(seconds: float) -> None:
    """The process's wall clock is off."""
    honest = time.time
    vars(time)["time"] = lambda: honest() + seconds


def produce_by(bootstrap: str) -> None:
    """The worker's producer takes another way to the brokers than its consumer."""

    def new_producer(app: WorkerApp) -> ProducerT:
        transport = copy.copy(app.transport)
        transport.url = [URL(f"kafka://{bootstrap}")]
        return StrictProducer(transport, loop=app.loop, beacon=app.beacon)

    type.__setattr__(WorkerApp, "_new_producer", new_producer)
