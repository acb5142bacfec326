"""Creates the topics of a prefix, and checks that they are what the worker needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from kafka import KafkaAdminClient
from kafka.errors import KafkaError, TopicAlreadyExistsError
from kafka.net.sasl.oauth import AbstractTokenProvider

from loopstream.errors import KafkaUnreachableError, TopicsError
from loopstream.runtime.topics import TopicPlan, Topics, plan
from loopstream.wire.connection import Connection, TokenFile

AbstractTokenProvider.register(TokenFile)

_HINT_CREATE = "Create the topics with: loopstream topics create"
_HINT_REACH = "Is Kafka running there, and does this machine reach it? See LOOPSTREAM_BOOTSTRAP."
_HINT_COUNT = (
    "A topic's partition count can't change: runs would move between partitions and lose their "
    "history. Use the present count, or another prefix."
)


@dataclass(slots=True)
class TopicsReport:
    """What `ensure_topics` found and did."""

    partitions: int
    created: list[str] = field(default_factory=list)
    present: list[str] = field(default_factory=list)


def ensure_topics(
    connection: Connection,
    prefix: str,
    partitions: int,
    replication: int = 1,
    *,
    timeout_s: float = 10.0,
    exact: bool = True,
) -> TopicsReport:
    """Create what is missing of a prefix's topics; doing it again changes nothing.

    Args:
        exact: whether an events topic that is there with another partition count is an error; else
            its count is taken for what is missing.

    Raises:
        KafkaUnreachableError: no broker answered in time.
        TopicsError: a topic is there with another partition count, or can't be created.
    """
    names = [topic.name for topic in plan(prefix, partitions)]
    with _admin(connection, timeout_s) as admin:
        counts = _partition_counts(admin, names)
        if not exact:
            partitions = counts.get(Topics(prefix).events, partitions)
        report = TopicsReport(partitions)
        wanted = {topic.name: topic for topic in plan(prefix, partitions)}
        _refuse_other_counts(wanted, counts)
        report.present = [name for name in wanted if name in counts]
        missing = [topic for name, topic in wanted.items() if name not in counts]
        if missing:
            _create(admin, missing, replication, timeout_s)
            report.created = [topic.name for topic in missing]
    return report


def check_topics(
    connection: Connection, prefix: str, partitions: int | None = None, *, timeout_s: float = 10.0
) -> int:
    """Check that all topics of a prefix are there and fit together.

    Args:
        connection: how to reach the brokers.
        prefix: of the topics.
        partitions: count that the events topic must have; None: any.
        timeout_s: time in which a broker must answer.

    Returns:
        The partition count of the events topic.

    Raises:
        KafkaUnreachableError: no broker answered in time.
        TopicsError: a topic is missing, or partition counts differ.
    """
    events = Topics(prefix).events
    names = [topic.name for topic in plan(prefix, partitions or 1)]
    with _admin(connection, timeout_s) as admin:
        counts = _partition_counts(admin, names)
    missing = [name for name in names if name not in counts]
    if missing:
        raise TopicsError(f"topics are missing: {', '.join(missing)}.", hint=_HINT_CREATE)
    if partitions is not None and counts[events] != partitions:
        raise TopicsError(
            f"the topic has {counts[events]} partitions, the settings say {partitions}.",
            where=events,
            hint=_HINT_COUNT,
        )
    wanted = {topic.name: topic for topic in plan(prefix, counts[events])}
    _refuse_other_counts(wanted, counts)
    return counts[events]


@contextmanager
def _admin(connection: Connection, timeout_s: float) -> Iterator[KafkaAdminClient]:
    timeout_ms = int(timeout_s * 1000)
    servers = ",".join(connection.bootstrap)
    try:
        client = KafkaAdminClient(
            **connection.for_kafka_python(),
            request_timeout_ms=timeout_ms,
            bootstrap_timeout_ms=timeout_ms,
        )
    except (KafkaError, OSError, ValueError) as error:
        raise KafkaUnreachableError(
            f"no broker answered within {timeout_s:g} s ({type(error).__name__}).",
            where=servers,
            hint=_HINT_REACH,
        ) from error
    try:
        yield client
    except (KafkaError, OSError) as error:
        raise KafkaUnreachableError(
            f"the broker did not do as asked ({type(error).__name__}).",
            where=servers,
            hint=_HINT_REACH,
        ) from error
    finally:
        client.close()


def _partition_counts(admin: KafkaAdminClient, names: list[str]) -> dict[str, int]:
    described = admin.describe_topics(names)
    return {
        topic["name"]: len(topic["partitions"]) for topic in described if not topic["error_code"]
    }


def _refuse_other_counts(wanted: Mapping[str, TopicPlan], counts: Mapping[str, int]) -> None:
    for name, topic in wanted.items():
        count = counts.get(name)
        if count is not None and count != topic.partitions:
            raise TopicsError(
                f"the topic has {count} partitions, not {topic.partitions}.",
                where=name,
                hint=_HINT_COUNT,
            )


def _create(
    admin: KafkaAdminClient, missing: list[TopicPlan], replication: int, timeout_s: float
) -> None:
    topics = {
        topic.name: {
            "num_partitions": topic.partitions,
            "replication_factor": replication,
            "configs": topic.config,
        }
        for topic in missing
    }
    try:
        admin.create_topics(topics, timeout_ms=int(timeout_s * 1000), wait_for_metadata=True)
    except TopicAlreadyExistsError:
        # Somebody else is creating them too: theirs must fit as well.
        counts = _partition_counts(admin, list(topics))
        _refuse_other_counts({topic.name: topic for topic in missing}, counts)
    except KafkaError as error:
        raise TopicsError(
            f"the topics can't be created ({type(error).__name__}).",
            hint="Check the replication factor, and that this user may create topics.",
        ) from error
