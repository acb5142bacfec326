"""Looks into the log beside the group: which record comes first at or after an offset."""

from __future__ import annotations

import asyncio
from typing import Any

from aiokafka import TopicPartition

from loopstream.runtime.access import free_consumer
from loopstream.wire.connection import Connection

_WAIT_S = 30.0


class LogProbe:
    """One short-lived consumer without a group per question: jumps are rare."""

    def __init__(self, connection: Connection, topic: str) -> None:
        self._connection = connection
        self._topic = topic

    async def first_at_or_after(self, partition: int, offset: int) -> int:
        """Offset of the first record that the log has at or after ``offset``.

        Raises:
            TimeoutError: the log has none, or no broker answers.
        """
        records = await self._from(partition, offset, offset)
        return int(records[0].offset)

    async def read(self, partition: int, first: int, last: int) -> list[Any]:
        """All records with offsets from ``first`` to ``last``, which is in the log.

        Raises:
            TimeoutError: no broker answers.
        """
        records = await self._from(partition, first, last)
        return [record for record in records if record.offset <= last]

    async def _from(self, partition: int, first: int, last: int) -> list[Any]:
        """Records from ``first`` on until one at or after ``last`` was seen."""
        tp = TopicPartition(self._topic, partition)
        # Below the start of the log it goes to the first record that retention left.
        consumer = free_consumer(self._connection)
        await consumer.start()
        try:
            consumer.assign([tp])
            consumer.seek(tp, first)
            records: list[Any] = []
            while not records or records[-1].offset < last:
                records.append(await asyncio.wait_for(consumer.getone(tp), _WAIT_S))
            return records
        finally:
            await consumer.stop()
