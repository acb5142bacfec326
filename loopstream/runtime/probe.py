"""Looks into the log beside the group: which record comes first at or after an offset."""

from __future__ import annotations

import asyncio

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
        tp = TopicPartition(self._topic, partition)
        # Below the start of the log it goes to the first record that retention left.
        consumer = free_consumer(self._connection)
        await consumer.start()
        try:
            consumer.assign([tp])
            consumer.seek(tp, offset)
            record = await asyncio.wait_for(consumer.getone(tp), _WAIT_S)
            return int(record.offset)
        finally:
            await consumer.stop()
