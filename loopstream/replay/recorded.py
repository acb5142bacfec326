"""The recorded verdicts of a prefix, in a replay's window."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from loopstream.errors import DataError
from loopstream.events import Verdict
from loopstream.replay.kafka import TopicReader, connected
from loopstream.replay.records import Record
from loopstream.wire.codec import CONTENT_TYPE
from loopstream.wire.connection import Connection
from loopstream.wire.verdicts import decode_verdict


@dataclass(frozen=True, slots=True)
class RecordedVerdict:
    """A verdict as it stands on the topic; ``value`` are its very bytes."""

    verdict: Verdict
    value: bytes
    partition: int
    offset: int
    append_time: int
    key: bytes | None


@dataclass(frozen=True, slots=True)
class VerdictTopic:
    """The verdict topic of a prefix.

    Attributes:
        topic: its name.
    """

    connection: Connection
    topic: str
    timeout_s: float = 10.0

    def read(self, numbers: list[int] | None = None) -> Iterator[RecordedVerdict]:
        """All verdicts from begin to the present end.

        At-least-once: a verdict may stand there more than once.

        Raises:
            KafkaUnreachableError: no broker answers.
            TopicsError: the topic is missing.
            DataError: a record is no verdict.
        """
        with connected(self.connection, self.timeout_s) as client:
            reader = TopicReader(client, self.topic, self.timeout_s)
            for number in numbers or reader.numbers():
                bounds = reader.bounds(number)
                for records in reader.batches(number, bounds.begin, bounds.end):
                    for record in records:
                        yield self._one(record, number)

    def _one(self, record: Record, number: int) -> RecordedVerdict:
        try:
            verdict = decode_verdict(record.value, dict(record.headers).get(CONTENT_TYPE))
        except DataError as error:
            where = f"{self.topic}-{number}@{record.offset}"
            raise DataError(error.message, where=where, hint=error.hint) from None
        value = record.value or b""
        return RecordedVerdict(verdict, value, number, record.offset, record.timestamp, record.key)
