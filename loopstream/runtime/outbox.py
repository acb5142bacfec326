"""Verdicts and dead letters on their way out: in order, at once, and confirmed when asked."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

Send = Callable[..., Awaitable["asyncio.Future[Any]"]]
"""(topic, key, value, partition), and headers where there are any -> confirmation."""
Headers = list[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class Message:
    """One record to send; ``value`` is made when it is sent."""

    topic: str
    key: bytes | None
    value: Callable[[], bytes]
    partition: int
    appended: int | None = None
    """Append time of the event that caused it, in milliseconds; None: nobody asks."""
    headers: Callable[[bytes], Headers] | None = None
    """Makes the record's headers of its value."""


class Outbox:
    """One task sends, so a run's verdicts keep their order.

    ``mark`` and ``confirmed`` are the checkpoint's barrier: everything put before the mark is
    durable when ``confirmed(mark)`` returns. A refused record raises there, and sticks.

    Args:
        send: hands a record to the client.
        durable: told the ``appended`` of each message that the broker has confirmed.
    """

    def __init__(self, send: Send, durable: Callable[[int], None] | None = None) -> None:
        self._send = send
        self._durable = durable
        self._queue: deque[Message] = deque()
        self._put = 0
        self._taken = 0
        self._unconfirmed: dict[int, asyncio.Future[Any]] = {}
        self._more = asyncio.Event()
        self._progress = asyncio.Event()
        self.failure: BaseException | None = None

    @property
    def pending(self) -> int:
        """Messages not yet confirmed by the broker."""
        return len(self._queue) + len(self._unconfirmed)

    def put(self, message: Message) -> None:
        """Queue a message."""
        self._queue.append(message)
        self._put += 1
        self._more.set()

    def mark(self) -> int:
        """Number of the last message put."""
        return self._put

    def clear(self) -> None:
        """Drop what was not sent: the next owner's replay makes it again."""
        self._taken += len(self._queue)
        self._queue.clear()
        self._progress.set()

    async def confirmed(self, mark: int) -> None:
        """Wait until all messages up to ``mark`` are durable (or dropped by `clear`).

        Raises:
            Exception: one of them was refused.
        """
        while self._taken < mark and self.failure is None:
            self._progress.clear()
            await self._progress.wait()
        waiting = [future for number, future in self._unconfirmed.items() if number <= mark]
        if waiting:
            await asyncio.wait(waiting)
        if self.failure is not None:
            raise self.failure

    async def run(self) -> None:
        """Send what is put, for ever.

        Raises:
            Exception: the client refused a message.
        """
        while True:
            await self._more.wait()
            self._more.clear()
            while self._queue:
                await self._send_next()

    async def _send_next(self) -> None:
        message = self._queue.popleft()
        number = self._taken + 1
        try:
            value = message.value()
            headers = () if message.headers is None else (message.headers(value),)
            future = await self._send(
                message.topic, message.key, value, message.partition, *headers
            )
        except Exception as error:
            self.failure = self.failure or error
            raise
        finally:
            self._taken += 1
            self._progress.set()
        self._unconfirmed[number] = future
        future.add_done_callback(partial(self._settle, number, message.appended))

    def _settle(self, number: int, appended: int | None, future: asyncio.Future[Any]) -> None:
        self._unconfirmed.pop(number, None)
        if future.cancelled():
            self.failure = self.failure or RuntimeError("a send was cancelled")
        elif (error := future.exception()) is not None:
            self.failure = self.failure or error
        elif appended is not None and self._durable is not None:
            self._durable(appended)
