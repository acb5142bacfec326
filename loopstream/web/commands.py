"""Operators' words on the command topic; confirmed by the broker before anyone says it is done."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Final, Literal

from kafka import KafkaProducer
from kafka.errors import KafkaError
from kafka.net.sasl.oauth import AbstractTokenProvider

from loopstream.config import Settings
from loopstream.errors import KafkaUnreachableError
from loopstream.runtime.topics import Topics
from loopstream.wire.connection import TokenFile

AbstractTokenProvider.register(TokenFile)

Action = Literal["release", "abort"]
ACTIONS: Final[tuple[Action, ...]] = ("release", "abort")
MAX_REASON: Final = 500
MAX_NAME: Final = 100


class Desk:
    """Writes commands, one order at a time."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._turn = asyncio.Lock()

    async def write(
        self, action: Action, scopes: Sequence[str], reason: str, by: str
    ) -> dict[str, int]:
        """Write one command for each run.

        Returns:
            The offset of each, by scope key.

        Raises:
            KafkaUnreachableError: the broker did not confirm all of them. Some may have been
                written: they can be given again without harm.
        """
        value = json.dumps(
            {"action": action, "reason": reason, "by": by}, ensure_ascii=False
        ).encode("utf-8", "replace")
        async with self._turn:
            return await asyncio.to_thread(self._send, scopes, value)

    def _send(self, scopes: Sequence[str], value: bytes) -> dict[str, int]:
        settings, millis = self._settings, int(self._settings.timeout_s * 1000)
        topic = Topics(settings.prefix).commands
        try:
            client = KafkaProducer(
                **settings.connection.for_kafka_python(),
                bootstrap_timeout_ms=millis,
                request_timeout_ms=millis,
                acks="all",
                allow_auto_create_topics=False,
                max_block_ms=millis,
                delivery_timeout_ms=2 * millis,
            )
            try:
                futures = {
                    scope: client.send(topic, key=scope.encode(), value=value) for scope in scopes
                }
                return {
                    scope: int(future.get(timeout=2 * settings.timeout_s).offset)
                    for scope, future in futures.items()
                }
            finally:
                client.close(timeout=settings.timeout_s)
        except (KafkaError, OSError) as error:
            raise KafkaUnreachableError(
                f"the command was not confirmed ({type(error).__name__}).",
                where=topic,
                hint="Is the broker up, and may the dashboard write to this topic?",
            ) from error
