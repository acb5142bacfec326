"""The config and commands topics, read from beginning to end and then on, without a group.

They are compacted, small, and written by operators alone. What is read here decides nothing by
itself: owners append it to their partitions, and folds check what comes back against it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from aiokafka import TopicPartition
from aiokafka.errors import ConsumerStoppedError

from loopstream.events import ControlSource
from loopstream.runtime.access import free_consumer
from loopstream.wire.connection import Connection

MAX_VALUE_BYTES: Final = 64 * 1024
_POLL_MS: Final = 200
_CERTAIN: Final = 2**63


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """One record of a control source."""

    offset: int
    key: str
    value: bytes | None


class Sources:
    """What has been read of the control sources so far."""

    def __init__(self, connection: Connection, config_topic: str, commands_topic: str) -> None:
        self._connection = connection
        self._partitions: dict[ControlSource, TopicPartition] = {
            "config": TopicPartition(config_topic, 0),
            "commands": TopicPartition(commands_topic, 0),
        }
        self._names = {tp: source for source, tp in self._partitions.items()}
        self._records: dict[ControlSource, dict[int, SourceRecord]] = {"config": {}, "commands": {}}
        self._next: dict[ControlSource, int] = {"config": 0, "commands": 0}
        self._all_read = False
        self._consumer: Any = None
        self._advanced = asyncio.Condition()

    def lookup(self, source: ControlSource, offset: int) -> SourceRecord | None:
        """The record at ``offset``; None: there is none (compacted away, or never written)."""
        return self._records[source].get(offset)

    def next_offset(self, source: ControlSource) -> int:
        """Everything before this offset has been read."""
        return _CERTAIN if self._all_read else self._next[source]

    @contextmanager
    def certain(self) -> Iterator[None]:
        """While it lasts, what has not been read counts as not there: see `catch_up`."""
        self._all_read = True
        try:
            yield
        finally:
            self._all_read = False

    async def start(self) -> None:
        """Connect and read to the present end."""
        self._consumer = free_consumer(self._connection)
        await self._consumer.start()
        self._consumer.assign(list(self._names))
        await self._consumer.seek_to_beginning(*self._names)
        ends = await self._consumer.end_offsets(list(self._names))
        while not self._reached(ends):
            await self._read()

    async def follow(self) -> None:
        """Read on, until `stop`."""
        with suppress(ConsumerStoppedError):
            while True:
                await self._read()

    async def catch_up(self) -> None:
        """Wait until everything is read that is in the sources now. Needs `follow` to run."""
        ends = await self._consumer.end_offsets(list(self._names))
        async with self._advanced:
            await self._advanced.wait_for(lambda: self._reached(ends))

    async def stop(self) -> None:
        """Disconnect."""
        if self._consumer is not None:
            await self._consumer.stop()

    def _reached(self, ends: dict[TopicPartition, int]) -> bool:
        return all(self._next[self._names[tp]] >= end for tp, end in ends.items())

    async def _read(self) -> None:
        consumer = self._consumer
        batches = await consumer.getmany(timeout_ms=_POLL_MS)
        for tp, records in batches.items():
            self._take(self._names[tp], records)
        for source, tp in self._partitions.items():
            # Compaction and markers leave holes, also at the end: the position passes them.
            self._next[source] = max(self._next[source], await consumer.position(tp))
        async with self._advanced:
            self._advanced.notify_all()

    def _take(self, source: ControlSource, records: list[Any]) -> None:
        for record in records:
            value = record.value
            if value is not None and len(value) > MAX_VALUE_BYTES:
                continue  # as if it were not there; the broker's bound is higher by its overhead
            key = (record.key or b"").decode("utf-8", "replace")
            self._records[source][record.offset] = SourceRecord(record.offset, key, value)
