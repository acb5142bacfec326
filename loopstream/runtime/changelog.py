"""The changelog of one partition, written by its owner alone; notices when somebody else wrote.

Kafka does not fence at-least-once writers: what a zombie had in its buffers lands after the heir's
rows. Recovery keeps the better row, but only until compaction has removed it, so for an idle run
the late row would win one day. The owner knows how many records it wrote; when its seal lands on a
higher offset than that, the records in between are read, and better rows written again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from loopstream.runtime.fold import RowPosition
from loopstream.runtime.ports import SendRecord
from loopstream.runtime.rows import PartitionRows, position_of

ReadRange = Callable[[int, int, int], Awaitable[list[Any]]]
"""(partition, first offset, last offset) -> the records of that range."""


class Changelog:
    """Writes rows of one partition and keeps count.

    Args:
        topic: the changelog.
        partition: of the events and of the changelog.
        send: hands a record to the producer.
        next_offset: offset that the first record written here gets if nobody else writes.
    """

    def __init__(self, topic: str, partition: int, send: SendRecord, next_offset: int) -> None:
        self.partition = partition
        self.known = next_offset
        """Everything before this offset was recovered, written or checked by this owner."""
        self._topic = topic
        self._send = send
        self._sent = 0
        self._seal: tuple[asyncio.Future[Any], int] | None = None

    async def write(
        self, key: bytes, row: bytes | None, headers: Iterable[tuple[str, bytes]] | None = None
    ) -> asyncio.Future[Any]:
        """Write a row, or a tombstone."""
        self._sent += 1
        return await self._send(self._topic, key, row, self.partition, headers)

    async def seal(self, key: bytes, row: bytes) -> None:
        """Write the last row of a checkpoint; its offset tells whether anybody else wrote."""
        confirmation = await self.write(key, row)
        self._seal = (confirmation, self._sent)

    def foreign(self) -> range | None:
        """Offsets up to the last confirmed seal among which there are somebody else's.

        None if there are none; then everything up to the seal is known.
        """
        if self._seal is None or not self._seal[0].done():
            return None
        (confirmation, sent), self._seal = self._seal, None
        end = confirmation.result().offset + 1
        first, self.known = self.known, end
        self._sent -= sent
        return range(first, end) if end - first > sent else None

    def foreign_tail(self, end: int) -> range | None:
        """Offsets after our last record, while we write nothing; None if there are none."""
        if self._sent or end <= self.known:
            return None
        first, self.known = self.known, end
        return range(first, end)


class Audit:
    """Repairs what somebody else wrote."""

    def __init__(self, position: RowPosition, read: ReadRange) -> None:
        self._position = position
        self._read = read

    async def better_rows(
        self, changelog: Changelog, rows: PartitionRows, offsets: range
    ) -> list[tuple[bytes, bytes]]:
        """Rows that are better than the last record of their key among ``offsets``.

        A record that is newer than our row needs nothing: the log makes us reach it too.
        """
        last: dict[bytes, Any] = {}
        for record in await self._read(changelog.partition, offsets.start, offsets.stop - 1):
            last[record.key] = record
        return [
            (key, kept)
            for key, record in last.items()
            if (kept := rows.get(key)) is not None
            and kept != record.value
            and self._position(kept)[1] > position_of(record, self._position)
        ]
