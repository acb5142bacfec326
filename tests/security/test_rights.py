"""What each role may do on a broker that knows its ACLs, and what it may not."""

from __future__ import annotations

import time
from collections.abc import Set as AbstractSet
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import (
    ClusterAuthorizationFailedError,
    KafkaError,
    KafkaTimeoutError,
    TopicAuthorizationFailedError,
)

from loopstream.cli.examine import Role
from loopstream.config import load
from loopstream.runtime.topics import Topics
from tests.security.conftest import Fort
from tests.security.test_login import said

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]

ALL = ("events", "verdicts", "dead_letters", "runs", "changelog", "config", "commands")
WRITES: dict[Role, AbstractSet[str]] = {
    Role.WORKER: {"events", "verdicts", "dead_letters", "runs", "changelog"},
    Role.RUNNER: {"events"},
    Role.OPERATOR: {"config", "commands"},
    Role.FORENSICS: frozenset[str](),
}
READS: dict[Role, AbstractSet[str]] = {
    Role.WORKER: {"events", "changelog", "config", "commands"},
    Role.RUNNER: {"verdicts"},
    Role.OPERATOR: {"config", "commands", "events", "verdicts", "dead_letters", "runs"},
    Role.FORENSICS: {"events", "verdicts", "dead_letters", "runs", "config", "commands"},
}
Refused = (TopicAuthorizationFailedError, ClusterAuthorizationFailedError, KafkaTimeoutError)


def client(fort: Fort, user: str) -> dict[str, Any]:
    values = {f"security.{key}": value for key, value in fort.security(user).items()}
    values["bootstrap"] = fort.broker.address("LOGIN")
    return load(values).settings.connection.for_kafka_python()


def may_write(fort: Fort, user: str, topic: str) -> bool:
    producer = KafkaProducer(**client(fort, user), max_block_ms=4_000, enable_idempotence=False)
    try:
        producer.send(topic, key=b"k", value=b"x", partition=0).get(20)
    except Refused:
        return False
    finally:
        producer.close()
    return True


def may_read(fort: Fort, user: str, topic: str) -> bool:
    """Whether a record comes that the installer has just written."""
    producer = KafkaProducer(bootstrap_servers=fort.broker.bootstrap)
    producer.send(topic, key=b"k", value=b"x", partition=0).get(20)
    producer.close()
    consumer = KafkaConsumer(
        **client(fort, user), group_id=None, enable_auto_commit=False, auto_offset_reset="earliest"
    )
    consumer.assign([TopicPartition(topic, 0)])
    deadline = time.monotonic() + 8
    try:
        while time.monotonic() < deadline:
            if consumer.poll(timeout_ms=500):
                return True
    except Refused:
        return False
    finally:
        consumer.close()
    return False


def allowed(fort: Fort, user: str, topics: Topics, operation: str) -> set[str]:
    """Topics on which a user may do something, by the broker's word."""
    names = {getattr(topics, name): name for name in ALL}
    admin = KafkaAdminClient(**client(fort, user))
    try:
        described = admin.describe_topics(list(names))
    finally:
        admin.close()
    return {
        names[topic["name"]]
        for topic in described
        if operation in (topic.get("authorized_operations") or ())
    }


@pytest.mark.parametrize("role", list(Role))
def test_a_role_may_do_what_it_needs_and_nothing_beyond(
    fort: Fort, tenants: tuple[str, ...], role: Role
) -> None:
    mine, other, *_ = (Topics(tenant) for tenant in tenants)
    user = f"{tenants[0]}-{role}"
    assert allowed(fort, user, mine, "WRITE") == WRITES[role]
    assert allowed(fort, user, mine, "READ") == READS[role]
    for operation in ("ALTER", "DELETE", "ALTER_CONFIGS"):
        assert not allowed(fort, user, mine, operation)
    for operation in ("READ", "WRITE", "DESCRIBE"):
        assert not allowed(fort, user, other, operation)


def test_a_runner_is_refused_whatever_it_tries(fort: Fort, tenants: tuple[str, ...]) -> None:
    mine, other, *_ = (Topics(tenant) for tenant in tenants)
    runner = f"{tenants[0]}-runner"
    assert may_write(fort, runner, mine.events)
    assert may_read(fort, runner, mine.verdicts)
    for topic in (mine.verdicts, mine.changelog, mine.config, mine.commands, other.events):
        assert not may_write(fort, runner, topic), topic
    for topic in (mine.events, mine.changelog, other.verdicts):
        assert not may_read(fort, runner, topic), topic


def test_forensics_writes_nothing(fort: Fort, tenants: tuple[str, ...]) -> None:
    topics, user = Topics(tenants[0]), f"{tenants[0]}-forensics"
    assert may_read(fort, user, topics.events)
    assert not any(may_write(fort, user, topic) for topic in (topics.events, topics.verdicts))


@pytest.mark.parametrize("role", list(Role))
def test_nobody_creates_topics_or_takes_another_ones_place(
    fort: Fort, tenants: tuple[str, ...], role: Role
) -> None:
    user = f"{tenants[0]}-{role}"
    admin = KafkaAdminClient(**client(fort, user))
    try:
        with pytest.raises(KafkaError):
            admin.create_topics([NewTopic(f"{tenants[0]}.more", 1, 1)])
        with pytest.raises(KafkaError):
            admin.delete_topics([Topics(tenants[0]).events])
    finally:
        admin.close()
    names = KafkaAdminClient(bootstrap_servers=fort.broker.bootstrap)
    try:
        listed = set(names.list_topics())
    finally:
        names.close()
    assert f"{tenants[0]}.more" not in listed
    assert Topics(tenants[0]).events in listed


def test_who_has_no_rights_sees_nothing(fort: Fort, tenants: tuple[str, ...]) -> None:
    assert not may_read(fort, "mallory", Topics(tenants[0]).verdicts)
    assert not may_write(fort, "mallory", Topics(tenants[0]).events)


def test_doctor_finds_the_rights_of_a_role_in_order(fort: Fort, tenants: tuple[str, ...]) -> None:
    done = said(fort, fort.security("works-worker"), "doctor", "--role", "worker", "-o", "ndjson")
    assert '"check":"rights","state":"ok"' in done.stdout.replace(" ", ""), done.stdout
