"""The topics themselves, read by kafka-python from given positions: no group, no commits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError
from kafka.net.sasl.oauth import AbstractTokenProvider

from loopstream.errors import KafkaUnreachableError, TopicsError
from loopstream.events import ControlSource
from loopstream.replay.controls import ReplaySources, SourceRecord
from loopstream.replay.records import Bounds, Record
from loopstream.wire.connection import Connection, TokenFile

AbstractTokenProvider.register(TokenFile)

_POLL_MS: Final = 500
_FETCH_BYTES: Final = 4 * 1024 * 1024
_MAX_POLL: Final = 2000
# A longer settings block or command could not be carried into the events.
_MAX_SOURCE_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class KafkaSource:
    """The events topic of a prefix, with the operators' topics beside it."""

    connection: Connection
    events: str
    config: str
    commands: str
    timeout_s: float = 10.0

    @contextmanager
    def open(self) -> Iterator[KafkaLog]:
        """Connect.

        Raises:
            KafkaUnreachableError: no broker answers.
            TopicsError: the events topic is missing.
        """
        with connected(self.connection, self.timeout_s) as client:
            yield KafkaLog(client, self)


@contextmanager
def connected(connection: Connection, timeout_s: float) -> Iterator[KafkaConsumer]:
    """A consumer for reading from given positions.

    Raises:
        KafkaUnreachableError: no broker answers in time, or it stops answering.
    """
    millis = int(timeout_s * 1000)
    try:
        client = KafkaConsumer(
            **connection.for_kafka_python(),
            bootstrap_timeout_ms=millis,
            request_timeout_ms=max(millis, 30_000),
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            allow_auto_create_topics=False,
            # In pure Python the checksum costs more than the fold; TCP and the broker have theirs.
            check_crcs=False,
            max_partition_fetch_bytes=_FETCH_BYTES,
            fetch_max_bytes=4 * _FETCH_BYTES,
            max_poll_records=_MAX_POLL,
        )
    except KafkaError as error:
        raise _unreachable(connection, error) from None
    try:
        yield client
    except KafkaError as error:
        raise _unreachable(connection, error) from error
    finally:
        client.close(autocommit=False, timeout_ms=1000)


def _unreachable(connection: Connection, error: KafkaError) -> KafkaUnreachableError:
    where = ",".join(connection.bootstrap)
    return KafkaUnreachableError(
        f"Kafka does not answer ({type(error).__name__}).",
        where=where,
        hint="Is a broker running there? Name another with --bootstrap or LOOPSTREAM_BOOTSTRAP.",
    )


class TopicReader:
    """Reads spans of one topic.

    Args:
        client: used by this reader alone while a span is read.
    """

    def __init__(self, client: KafkaConsumer, topic: str, timeout_s: float) -> None:
        self._client = client
        self._topic = topic
        self._timeout_s = timeout_s

    def numbers(self) -> list[int]:
        """The topic's partitions.

        Raises:
            TopicsError: there is no such topic.
        """
        numbers = self._client.partitions_for_topic(self._topic)
        if not numbers:
            hint = "Create the topics with: loopstream topics create"
            raise TopicsError("the topic does not exist.", where=self._topic, hint=hint)
        return sorted(numbers)

    def bounds(self, number: int) -> Bounds:
        """First offset and end of a partition."""
        part, millis = TopicPartition(self._topic, number), int(self._timeout_s * 1000)
        begin = self._client.beginning_offsets([part], timeout_ms=millis)[part]
        end = self._client.end_offsets([part], timeout_ms=millis)[part]
        return Bounds(begin, end)

    def offset_at(self, number: int, millis: int) -> int:
        """First offset appended at or after a time; the partition's end if there is none."""
        part = TopicPartition(self._topic, number)
        found = self._client.offsets_for_times({part: max(0, millis)})[part]
        return self.bounds(number).end if found is None else int(found.offset)

    def batches(self, number: int, begin: int, end: int) -> Iterator[Sequence[Any]]:
        """Records from ``begin`` to before ``end``.

        Raises:
            KafkaUnreachableError: known records do not arrive in time.
        """
        if begin >= end:
            return
        part = TopicPartition(self._topic, number)
        self._client.assign([part])
        self._client.seek(part, begin)
        idle_ms = 0
        while True:
            records = self._client.poll(timeout_ms=_POLL_MS).get(part, [])
            idle_ms = 0 if records else idle_ms + _POLL_MS
            if records and records[-1].offset >= end:
                records = [record for record in records if record.offset < end]
                if records:
                    yield records
                return
            if records:
                yield records
            # Compaction and transactions leave holes, also at the end: the position passes them.
            if (self._client.position(part) or 0) >= end:
                return
            if idle_ms > 3000 * self._timeout_s:
                message = "the brokers hold records but do not send them."
                raise KafkaUnreachableError(message, where=f"{self._topic}-{number}")

    def follow(self, spans: Mapping[int, tuple[int, int]], *, for_ever: bool) -> Iterator[Any]:
        """Records of several partitions as they arrive, and on from there if wanted."""
        if not for_ever:
            for number, (begin, end) in spans.items():
                for records in self.batches(number, begin, end):
                    yield from records
            return
        parts = {TopicPartition(self._topic, n): begin for n, (begin, _) in spans.items()}
        self._client.assign(list(parts))
        for part, begin in parts.items():
            self._client.seek(part, begin)
        while True:
            for records in self._client.poll(timeout_ms=_POLL_MS).values():
                yield from records


class KafkaLog:
    """The events topic, opened."""

    verified = True

    def __init__(self, client: KafkaConsumer, source: KafkaSource) -> None:
        self.name = source.events
        self._client = client
        self._source = source
        self._reader = TopicReader(client, source.events, source.timeout_s)
        self.partitions = len(self._reader.numbers())

    def numbers(self) -> list[int]:
        """All partitions."""
        return list(range(self.partitions))

    def bounds(self, number: int) -> Bounds:
        """First offset and end of a partition."""
        return self._reader.bounds(number)

    def offset_at(self, number: int, millis: int) -> int:
        """First offset appended at or after a time."""
        return self._reader.offset_at(number, millis)

    def batches(self, spans: Mapping[int, tuple[int, int]]) -> Iterator[Sequence[Record]]:
        """One partition after the other."""
        for number, (begin, end) in spans.items():
            yield from self._reader.batches(number, begin, end)

    def controls(self) -> ReplaySources:
        """The config and commands topics, read to their end."""
        held: dict[ControlSource, dict[int, SourceRecord]] = {
            "config": self._read_source(self._source.config),
            "commands": self._read_source(self._source.commands),
        }
        return ReplaySources(held)

    def pins(self) -> None:
        """They are to be looked for."""

    def _read_source(self, topic: str) -> dict[int, SourceRecord]:
        reader = TopicReader(self._client, topic, self._source.timeout_s)
        held: dict[int, SourceRecord] = {}
        reader.numbers()
        bounds = reader.bounds(0)
        for records in reader.batches(0, bounds.begin, bounds.end):
            for record in records:
                if record.value is not None and len(record.value) > _MAX_SOURCE_BYTES:
                    continue  # as if it were not there: so does the worker
                key = (record.key or b"").decode("utf-8", "replace")
                held[record.offset] = SourceRecord(
                    record.offset, key, record.value, record.timestamp
                )
        return held
