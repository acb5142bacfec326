"""One verdict from the topic, by its position: for addresses older than what the ring holds."""

from __future__ import annotations

import asyncio
from typing import Final

from loopstream.config import Settings
from loopstream.replay.kafka import TopicReader, connected
from loopstream.runtime.topics import Topics
from loopstream.web.facts import Pins
from loopstream.web.records import news_of
from loopstream.web.ring import Said

_AT_ONCE: Final = 4
_MAX: Final = 2**63 - 2


class Archive:
    """Looks single records up, a few at a time; the partitions' pins among them.

    Raises:
        SettingsError: the keys of signed verdicts can't be read.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._keys = settings.signing.read()
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self.pins = Pins(settings)

    async def find(self, verdict_id: str, position: str) -> Said | None:
        """The verdict of this id at ``partition-offset``; None if it is not there (any more).

        Raises:
            KafkaUnreachableError: no broker answers.
        """
        partition, _, offset = position.partition("-")
        if not (partition.isascii() and partition.isdigit() and offset.isascii()):
            return None
        if not offset.isdigit() or len(partition) > 5 or len(offset) > 19 or int(offset) > _MAX:
            return None
        async with self._turns:
            return await asyncio.to_thread(self._read, verdict_id, int(partition), int(offset))

    def _read(self, verdict_id: str, partition: int, offset: int) -> Said | None:
        settings, topics = self._settings, Topics(self._settings.prefix)
        with connected(settings.connection, settings.timeout_s) as client:
            reader = TopicReader(client, topics.verdicts, settings.timeout_s)
            if partition not in reader.numbers():
                return None
            bounds = reader.bounds(partition)
            if not bounds.begin <= offset < bounds.end:
                return None
            for records in reader.batches(partition, offset, offset + 1):
                for record in records:
                    said = news_of(record, topics, self._keys)
                    if isinstance(said, Said) and said.verdict.id == verdict_id:
                        return said
        return None
