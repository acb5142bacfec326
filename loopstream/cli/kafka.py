"""kafka-python clients for commands: bounded waits, and errors that say what to do."""

from __future__ import annotations

import logging
import ssl
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import (
    AuthorizationError,
    KafkaError,
    SaslAuthenticationFailedError,
    UnknownTopicOrPartitionError,
)
from kafka.net.sasl.oauth import AbstractTokenProvider

from loopstream.cli.console import DEBUG
from loopstream.config import Settings
from loopstream.errors import KafkaUnreachableError, LoopstreamError, SettingsError, TopicsError
from loopstream.wire.connection import TokenFile
from loopstream.wire.limits import MAX_RECORD_BYTES

AbstractTokenProvider.register(TokenFile)

CREATE_HINT: Final = "Create the topics with: loopstream topics create"
_START_HINT: Final = (
    "Is a broker running there? Name another with --bootstrap or LOOPSTREAM_BOOTSTRAP, "
    "or start one with: loopstream broker"
)


# Reading certificates, keys and tokens; nothing on the network raises these.
_FILE_ERRORS: Final = (FileNotFoundError, PermissionError, IsADirectoryError, ssl.SSLError)
_SECURITY_HINT: Final = (
    "Is it this address, and do the security settings fit its listener? --debug shows what the "
    "client library says."
)


@contextmanager
def consumer(settings: Settings) -> Iterator[KafkaConsumer]:
    """A consumer without a group, for reading from positions of the caller's choice.

    Raises:
        LoopstreamError: as of `kafka_errors`; also for errors of the body.
    """
    with kafka_errors(settings):
        client = KafkaConsumer(
            **_common(settings),
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            allow_auto_create_topics=False,
            max_partition_fetch_bytes=2 * MAX_RECORD_BYTES,
        )
        try:
            yield client
        finally:
            client.close(autocommit=False, timeout_ms=1000)


@contextmanager
def producer(settings: Settings, **options: Any) -> Iterator[KafkaProducer]:
    """A producer whose records are confirmed by all in-sync replicas.

    Args:
        options: further settings of kafka-python's producer.

    Raises:
        LoopstreamError: as of `kafka_errors`; also for errors of the body.
    """
    millis = _millis(settings)
    with kafka_errors(settings):
        client = KafkaProducer(
            **_common(settings),
            acks="all",
            allow_auto_create_topics=False,
            max_block_ms=millis,
            delivery_timeout_ms=2 * millis,
            max_request_size=MAX_RECORD_BYTES + 64 * 1024,
            **options,
        )
        try:
            yield client
        finally:
            client.close(timeout=settings.timeout_s)


@contextmanager
def admin(settings: Settings) -> Iterator[KafkaAdminClient]:
    """An admin client.

    Raises:
        LoopstreamError: as of `kafka_errors`; also for errors of the body.
    """
    with kafka_errors(settings):
        client = KafkaAdminClient(**_common(settings))
        try:
            yield client
        finally:
            client.close()


@contextmanager
def kafka_errors(settings: Settings) -> Iterator[None]:
    """Translate the client library's errors into ours.

    Raises:
        KafkaUnreachableError: no broker answered in time.
        TopicsError: a topic is not there.
        SettingsError: the brokers refuse who we say we are, or a TLS file can't be read.
    """
    _hush()
    try:
        if settings.connection.uses_ssl:
            settings.connection.ssl_context()  # the client would only say that nobody answers
        yield
    except LoopstreamError:
        raise
    except KafkaError as error:
        raise _translated(error, settings) from error
    except _FILE_ERRORS as error:
        hint = "Check the files that the security settings name."
        raise SettingsError(f"can't connect: {error}.", where="security", hint=hint) from error
    except OSError as error:
        raise _unreachable(error, settings) from error


def partitions_of(client: KafkaConsumer, topic: str) -> list[TopicPartition]:
    """The partitions of a topic.

    Raises:
        TopicsError: there is no such topic.
    """
    numbers = client.partitions_for_topic(topic)
    if not numbers:
        raise missing(topic)
    return [TopicPartition(topic, number) for number in sorted(numbers)]


def held(client: KafkaConsumer, topic: str, settings: Settings) -> int:
    """Number of offsets between begin and end of a topic: an upper bound of its records."""
    partitions = partitions_of(client, topic)
    millis = _millis(settings)
    ends = client.end_offsets(partitions, timeout_ms=millis)
    begins = client.beginning_offsets(partitions, timeout_ms=millis)
    return sum(ends[partition] - begins[partition] for partition in partitions)


def require_topic(settings: Settings, topic: str) -> None:
    """See that a topic is there before anything is sent: a producer only finds out by waiting.

    Raises:
        TopicsError: there is no such topic.
        LoopstreamError: as of `kafka_errors`.
    """
    with consumer(settings) as client:
        partitions_of(client, topic)


class Confirmations:
    """Waits for the brokers' word on every record sent, and bounds how many are under way."""

    MAX_PENDING: Final = 2000

    def __init__(self, client: KafkaProducer, settings: Settings) -> None:
        self._client = client
        self._timeout_s = 2 * settings.timeout_s
        self._pending: deque[Any] = deque()

    def add(self, future: Any) -> None:
        """Take note of a record that was sent.

        Raises:
            KafkaError: an earlier record was refused, or not confirmed in time.
        """
        self._pending.append(future)
        if len(self._pending) > self.MAX_PENDING:
            self._pending.popleft().get(timeout=self._timeout_s)

    def wait(self) -> None:
        """Wait until all are confirmed.

        Raises:
            KafkaError: a record was refused, or not confirmed in time.
        """
        self._client.flush(timeout=self._timeout_s)
        while self._pending:
            self._pending.popleft().get(timeout=self._timeout_s)


def missing(topic: str) -> TopicsError:
    """The error that a topic is not there."""
    return TopicsError("the topic does not exist.", where=topic, hint=CREATE_HINT)


def _translated(error: KafkaError, settings: Settings) -> LoopstreamError:
    where, name = settings.bootstrap, type(error).__name__
    if isinstance(error, UnknownTopicOrPartitionError):
        return TopicsError("a topic does not exist.", where=settings.prefix, hint=CREATE_HINT)
    if isinstance(error, AuthorizationError | SaslAuthenticationFailedError):
        hint = "Check the security settings and the principal's ACLs."
        return SettingsError(f"the brokers refuse us: {name}.", where=where, hint=hint)
    return _unreachable(error, settings)


def _unreachable(error: Exception, settings: Settings) -> KafkaUnreachableError:
    secured = settings.security.protocol != "PLAINTEXT"
    message = f"Kafka does not answer ({type(error).__name__})."
    hint = _SECURITY_HINT if secured else _START_HINT
    return KafkaUnreachableError(message, where=settings.bootstrap, hint=hint)


def _common(settings: Settings) -> dict[str, Any]:
    millis = _millis(settings)
    return {
        **settings.connection.for_kafka_python(),
        "bootstrap_timeout_ms": millis,
        "request_timeout_ms": millis,
    }


def _millis(settings: Settings) -> int:
    return int(settings.timeout_s * 1000)


def _hush() -> None:
    """Keep the library's own log off the terminal, unless asked for."""
    level = logging.DEBUG if DEBUG.get() else logging.CRITICAL
    logging.getLogger("kafka").setLevel(level)
