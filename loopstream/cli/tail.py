"""Reading a topic from its begin to where it ended when asked, and on from there if wanted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from kafka import KafkaConsumer, TopicPartition

from loopstream.errors import KafkaUnreachableError

_POLL_MS: Final = 250


@dataclass(frozen=True, slots=True)
class Tail:
    """What to read of a topic.

    Attributes:
        partitions: what to read.
        begin: read what is there already; else only what comes.
        follow: go on when the end is reached.
        last: with ``begin``, at most so many offsets of each partition before its end.
    """

    client: KafkaConsumer
    partitions: list[TopicPartition]
    begin: bool = True
    follow: bool = False
    timeout_s: float = 10.0
    last: int | None = None

    def records(self) -> Iterator[Any]:
        """The records, in order within each partition.

        Raises:
            KafkaUnreachableError: known records do not arrive in time.
        """
        self.client.assign(self.partitions)
        millis = int(self.timeout_s * 1000)
        ends = self.client.end_offsets(self.partitions, timeout_ms=millis)
        if self.begin and self.last is None:
            self.client.seek_to_beginning(*self.partitions)
        elif self.begin and self.last is not None:
            begins = self.client.beginning_offsets(self.partitions, timeout_ms=millis)
            for partition, end in ends.items():
                self.client.seek(partition, max(begins[partition], end - self.last))
        else:
            for partition, end in ends.items():
                self.client.seek(partition, end)
        idle = 0.0
        while self.follow or not self._reached(ends):
            polled = self.client.poll(timeout_ms=_POLL_MS)
            idle = 0.0 if polled else idle + _POLL_MS / 1000
            if not self.follow and idle > self.timeout_s:
                raise KafkaUnreachableError("the brokers hold records but do not send them.")
            for records in polled.values():
                yield from records

    def _reached(self, ends: dict[TopicPartition, int]) -> bool:
        return all((self.client.position(part) or 0) >= end for part, end in ends.items())
