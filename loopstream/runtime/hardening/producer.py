"""A producer whose flush is a barrier.

Answers: Faust's flush before a commit returns after 0.1 s without a message, does not see a
message in flight, and never looks at the result of a send (faust-streaming#273 added the flush;
``Topic._on_published`` only logs), so a refused output was lost with its offsets committed.
Idempotence is on: a retry can't write twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any, cast

from faust.exceptions import ProducerSendError
from faust.transport.drivers.aiokafka import Producer
from faust.types import FutureMessage, HeadersArg, RecordMetadata


class StrictProducer(Producer):
    """Faust's producer with sticky failure: after one undelivered record nothing is committed."""

    _outstanding: set[asyncio.Future[Any]]
    failure: BaseException | None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._outstanding = set()
        self.failure = None

    def _settings_extra(self) -> Mapping[str, Any]:
        return {"acks": "all", "enable_idempotence": True}

    @property
    def outstanding(self) -> int:
        """Number of records sent but not confirmed."""
        return len(self._outstanding)

    def send_soon(self, fut: FutureMessage) -> None:
        """Queue a message (Faust's own path for table writes); tracked like any other."""
        self._track(fut)
        super().send_soon(fut)

    async def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        partition: int | None,
        timestamp: float | None,
        headers: HeadersArg | None,
        *,
        transactional_id: str | None = None,
    ) -> Awaitable[RecordMetadata]:
        """Hand a record to the client; the returned future is its confirmation."""
        sent = await super().send(
            topic, key, value, partition, timestamp, headers, transactional_id=transactional_id
        )
        self._track(cast("asyncio.Future[Any]", sent))
        return sent

    async def flush(self) -> None:
        """Wait until everything outstanding now is confirmed.

        A snapshot: waiting for nothing to be outstanding would starve commits under load.

        Raises:
            ProducerSendError: some record was refused, now or earlier.
        """
        snapshot = set(self._outstanding)
        if snapshot and self.failure is None:
            await asyncio.wait(snapshot, return_when=asyncio.FIRST_EXCEPTION)
        if self.failure is not None:
            raise ProducerSendError(f"undelivered output, no commit: {self.failure!r}")

    def _track(self, future: asyncio.Future[Any]) -> None:
        self._outstanding.add(future)
        future.add_done_callback(self._settle)

    def _settle(self, future: asyncio.Future[Any]) -> None:
        self._outstanding.discard(future)
        if future.cancelled():
            self.failure = self.failure or ProducerSendError("a send was cancelled")
        elif (error := future.exception()) is not None:
            self.failure = self.failure or error
