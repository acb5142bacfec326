"""Topics: created once, checked at start."""

from __future__ import annotations

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from loopstream.errors import KafkaUnreachableError, TopicsError
from loopstream.runtime.admin import check_topics, ensure_topics
from loopstream.runtime.topics import Topics, plan
from loopstream.wire.connection import Connection


def test_all_topics_have_the_same_partition_count_but_the_operators_two() -> None:
    counts = {topic.name.removeprefix("p."): topic.partitions for topic in plan("p", 6)}
    assert counts.pop("config") == counts.pop("commands") == 1
    assert set(counts.values()) == {6}
    assert set(counts) == {"events", "verdicts", "dead-letters", "runs", "worker-runs-changelog"}


def test_no_broker_is_one_clear_error() -> None:
    with pytest.raises(
        KafkaUnreachableError, match=r"127\.0\.0\.1:1: no broker answered"
    ) as caught:
        check_topics(Connection(bootstrap=("127.0.0.1:1",)), "p", timeout_s=0.5)
    assert caught.value.hint


@pytest.mark.kafka
def test_creating_twice_changes_nothing(bootstrap: str, prefix: str) -> None:
    connection = Connection(bootstrap=(bootstrap,))
    first = ensure_topics(connection, prefix, 3)
    again = ensure_topics(connection, prefix, 3)
    assert len(first.created) == len(again.present) == 7
    assert first.present == again.created == []
    assert check_topics(connection, prefix) == 3


@pytest.mark.kafka
def test_another_partition_count_is_refused(bootstrap: str, prefix: str) -> None:
    connection = Connection(bootstrap=(bootstrap,))
    ensure_topics(connection, prefix, 3)
    with pytest.raises(TopicsError, match="has 3 partitions, not 4"):
        ensure_topics(connection, prefix, 4)
    with pytest.raises(TopicsError, match="has 3 partitions, the settings say 4"):
        check_topics(connection, prefix, 4)


@pytest.mark.kafka
def test_a_missing_topic_is_named_with_what_to_do(bootstrap: str, prefix: str) -> None:
    with pytest.raises(TopicsError, match=f"{prefix}.events.*loopstream topics create"):
        check_topics(Connection(bootstrap=(bootstrap,)), prefix)


@pytest.mark.kafka
def test_topics_are_configured_as_planned(bootstrap: str, prefix: str) -> None:
    ensure_topics(Connection(bootstrap=(bootstrap,)), prefix, 2)
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        for topic in plan(prefix, 2):
            resource = ConfigResource(ConfigResourceType.TOPIC, topic.name)
            described = admin.describe_configs([resource], config_filter="all")
            values = next(iter(next(iter(described.values())).values()))
            seen = {name: values[name]["value"] for name in topic.config}
            assert seen == topic.config, topic.name
    finally:
        admin.close()
    assert Topics(prefix).changelog == f"{prefix}.worker-runs-changelog"
