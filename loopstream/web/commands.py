"""Operators' words on the command topic; confirmed by the broker before anyone says it is done."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
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

    async def write(self, action: Action, scope: str, reason: str, by: str) -> int:
        """Write a command for one run.

        Returns:
            Its offset.

        Raises:
            KafkaUnreachableError: the broker did not confirm it. It may have been written: it can
                be given again without harm.
        """
        return await self._write(scope, {"action": action, "reason": reason, "by": by})

    async def write_to_agent(self, action: Action, agent: str, reason: str, by: str) -> int:
        """Write a command for all runs of an agent; otherwise as `write`."""
        command = {"action": action, "agent": agent, "reason": reason, "by": by}
        return await self._write(agent, command)

    async def _write(self, key: str, command: Mapping[str, str]) -> int:
        value = json.dumps(command, ensure_ascii=False).encode("utf-8", "replace")
        async with self._turn:
            return await asyncio.to_thread(self._send, key, value)

    def _send(self, key: str, value: bytes) -> int:
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
                future = client.send(topic, key=key.encode(), value=value)
                return int(future.get(timeout=2 * settings.timeout_s).offset)
            finally:
                client.close(timeout=settings.timeout_s)
        except (KafkaError, OSError) as error:
            raise KafkaUnreachableError(
                f"the command was not confirmed ({type(error).__name__}).",
                where=topic,
                hint="Is the broker up, and may the dashboard write to this topic?",
            ) from error
