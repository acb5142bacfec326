"""Kafka, as the runner's threads see it: kafka-python's producer and consumer, and their quirks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import (
    InvalidRecordError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
)
from kafka.net.compat import KafkaNetClient
from kafka.net.sasl.oauth import AbstractTokenProvider

from loopstream.errors import TopicsError
from loopstream.sdk.frames import Frame
from loopstream.sdk.hush import hush
from loopstream.sdk.ports import Done, Record, Refused
from loopstream.wire.codec import CONTENT_TYPE
from loopstream.wire.connection import Connection, TokenFile
from loopstream.wire.limits import MAX_RECORD_BYTES, MAX_VERDICT_BYTES
from loopstream.wire.signing import KEY_ID, SIGNATURE, Headers

_REFUSALS: Final = (MessageSizeTooLargeError, RecordListTooLargeError, InvalidRecordError)
_COMMON: Final[dict[str, Any]] = {
    "bootstrap_timeout_ms": 5_000,
    "request_timeout_ms": 10_000,
    "reconnect_backoff_ms": 200,
    "reconnect_backoff_max_ms": 2_000,
    "metrics_enabled": False,
}
# After that a frame counts as failed; it is sent again by another producer. The runner's threads
# wait for a little longer before they give up a producer that says nothing.
_DELIVERY_MS: Final = 30_000
_ENDS_TIMEOUT_MS: Final = 2_000

# The library asks for its own base class; `TokenFile` must not know the library.
AbstractTokenProvider.register(TokenFile)


class _Producer(KafkaProducer):
    """A producer whose ``close`` closes.

    Upstream's starts with a flush, and leaves the producer running for good if that times out.
    """

    def flush(self, timeout: float | None = None) -> None:
        with contextlib.suppress(KafkaTimeoutError):
            super().flush(timeout)


class KafkaOut:
    """An idempotent producer of the events topic; see `loopstream.sdk.ports.Out`.

    Args:
        headers: makes a record's headers of its value.

    Raises:
        TopicsError: the topic does not exist.
        KafkaError: Kafka is not reachable.
    """

    def __init__(
        self, connection: Connection, topic: str, headers: Callable[[bytes], Headers]
    ) -> None:
        self._topic = topic
        self._headers = headers
        hush(connection.client_id)
        with _client_maker() as make_client:
            self._producer = _Producer(
                **connection.for_kafka_python(),
                **_COMMON,
                acks="all",
                enable_idempotence=True,
                max_block_ms=5_000,
                delivery_timeout_ms=_DELIVERY_MS,
                max_request_size=MAX_RECORD_BYTES + 64 * 1024,
                kafka_client=make_client,
            )
        try:
            self.partitions = len(self._producer.partitions_for(topic))
        except KafkaTimeoutError as error:
            self.close(0)
            hint = f"Run: loopstream topics create --prefix {topic.rpartition('.')[0]}"
            raise TopicsError(f"topic {topic} is not there.", hint=hint) from error

    def send(self, frame: Frame, done: Done) -> None:
        """See `Out`."""
        try:
            future = self._producer.send(
                self._topic,
                value=frame.value,
                key=frame.key,
                partition=frame.partition,
                headers=self._headers(frame.value),
            )
        except Exception as error:  # noqa: BLE001 - whatever it is, the frame was not sent
            done(_translated(error))
            return
        future.add_callback(lambda _: done(None))
        future.add_errback(lambda error: done(_translated(error)))

    def close(self, timeout: float) -> None:
        """See `Out`."""
        with contextlib.suppress(Exception):
            self._producer.close(timeout)


class KafkaIn:
    """A consumer of the verdict topic, without a group; see `loopstream.sdk.ports.In`.

    Raises:
        KafkaError: Kafka is not reachable.
    """

    def __init__(self, connection: Connection, topic: str) -> None:
        self._topic = topic
        hush(connection.client_id)
        with _client_maker() as make_client:
            self._consumer = KafkaConsumer(
                **connection.for_kafka_python(),
                **_COMMON,
                group_id=None,
                enable_auto_commit=False,
                # Where retention has overtaken the position, all that is left may matter.
                auto_offset_reset="earliest",
                # A fetch that waits delays the first one of a partition that is added.
                fetch_max_wait_ms=100,
                max_partition_fetch_bytes=4 * MAX_VERDICT_BYTES,
                kafka_client=make_client,
            )

    def ends(self, partitions: Iterable[int]) -> Mapping[int, int]:
        """See `In`."""
        places = [TopicPartition(self._topic, partition) for partition in partitions]
        offsets = self._consumer.end_offsets(places, timeout_ms=_ENDS_TIMEOUT_MS)
        return {place.partition: offset for place, offset in offsets.items()}

    def assign(self, positions: Mapping[int, int]) -> None:
        """See `In`."""
        places = {TopicPartition(self._topic, at): offset for at, offset in positions.items()}
        known = self._consumer.assignment()
        self._consumer.assign(list(places))
        for place, offset in places.items():
            if place not in known:
                self._consumer.seek(place, offset)

    def poll(self, timeout: float) -> Sequence[Record]:
        """See `In`."""
        batches = self._consumer.poll(timeout_ms=int(timeout * 1000))
        return [
            Record(
                place.partition,
                found.offset,
                found.key,
                found.value,
                _header(found.headers, CONTENT_TYPE),
                _header(found.headers, SIGNATURE),
                _header(found.headers, KEY_ID),
            )
            for place, batch in batches.items()
            for found in batch
        ]

    def close(self) -> None:
        """See `In`."""
        with contextlib.suppress(Exception):
            self._consumer.close(autocommit=False, timeout_ms=1_000)


@contextlib.contextmanager
def _client_maker() -> Iterator[Callable[..., KafkaNetClient]]:
    """Makes a network client that never creates topics, and is closed if its owner is not made.

    Upstream drops the setting on its way to the metadata request, and leaves a thread behind when
    a consumer finds no broker.
    """
    made: list[KafkaNetClient] = []

    def make(**configs: Any) -> KafkaNetClient:
        client = KafkaNetClient(**configs)
        client.cluster.config["allow_auto_create_topics"] = False
        made.append(client)
        return client

    try:
        yield make
    except BaseException:
        for client in made:
            with contextlib.suppress(Exception):
                client.close()
        raise


def _translated(error: Exception) -> Exception:
    return Refused(type(error).__name__) if isinstance(error, _REFUSALS) else error


def _header(headers: Iterable[tuple[str, bytes]], wanted: str) -> bytes | None:
    return next((value for name, value in headers if name == wanted), None)
