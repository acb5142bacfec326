"""Operators' words on the command topic; confirmed by the broker before anyone says it is done.

The dashboard and the command line write the same records.
"""

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
Command = Mapping[str, str]
ACTIONS: Final[tuple[Action, ...]] = ("release", "abort")
MAX_REASON: Final = 500
MAX_NAME: Final = 100


def command_of(action: Action, reason: str, by: str, agent: str | None = None) -> Command:
    """The record of an order.

    Args:
        agent: it is for all runs of this agent, whose id is the record's key then.
    """
    command = {"action": action, "reason": reason, "by": by}
    return command if agent is None else {**command, "agent": agent}


def send(settings: Settings, key: str, command: Command) -> int:
    """Write a command.

    Args:
        key: scope key of the run, or the agent's id.

    Returns:
        Its offset.

    Raises:
        KafkaUnreachableError: the broker did not confirm it. It may have been written: it can be
            given again without harm.
    """
    value = json.dumps(command, ensure_ascii=False).encode("utf-8", "replace")
    millis = int(settings.timeout_s * 1000)
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
            hint="Is the broker up, and may we write to this topic?",
        ) from error


class Desk:
    """Writes commands, one order at a time."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._turn = asyncio.Lock()

    async def write(self, action: Action, scope: str, reason: str, by: str) -> int:
        """Write a command for one run; otherwise as `send`."""
        return await self._write(scope, command_of(action, reason, by))

    async def write_to_agent(self, action: Action, agent: str, reason: str, by: str) -> int:
        """Write a command for all runs of an agent; otherwise as `send`."""
        return await self._write(agent, command_of(action, reason, by, agent))

    async def _write(self, key: str, command: Command) -> int:
        async with self._turn:
            return await asyncio.to_thread(send, self._settings, key, command)
