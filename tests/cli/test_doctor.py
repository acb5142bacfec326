from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from loopstream.cli.examine import NAMES, RIGHTS, Role
from loopstream.runtime.topics import Topics
from tests.cli.conftest import Cli, Said

USERS = Path(__file__).resolve().parents[2] / "deploy/kubernetes/strimzi/users.yaml"


def states(said: Said) -> dict[str, str]:
    return {row["check"]: row["state"] for row in said.rows}


def found(said: Said, check: str) -> dict[str, Any]:
    (row,) = [row for row in said.rows if row["check"] == check]
    assert isinstance(row, dict)
    return row


@pytest.mark.parametrize("role", list(Role))
def test_the_rights_wanted_are_those_that_the_deployment_grants(role: Role) -> None:
    users = {doc["metadata"]["name"]: doc for doc in yaml.safe_load_all(USERS.read_text())}
    acls = users[f"loopstream-{role}"]["spec"]["authorization"]["acls"]
    for name, needed in RIGHTS[role].items():
        topic = getattr(Topics("loopstream"), name)
        granted = {
            re.sub("(?<!^)(?=[A-Z])", "_", operation).upper()
            for acl in acls
            if acl["resource"]["type"] == "topic" and topic.startswith(acl["resource"]["name"])
            for operation in acl["operations"]
        }
        assert needed <= granted, topic


def test_without_kafka_it_says_what_to_do(cli: Cli) -> None:
    said = cli("doctor", "-o", "ndjson", "--bootstrap", "127.0.0.1:1", "--set", "timeout_s=1")
    assert said.code == 4
    assert states(said) == {"versions": "ok", "kafka": "fail"}
    assert "loopstream broker" in found(said, "kafka")["do"]


@pytest.mark.kafka
def test_without_topics_it_says_what_to_do(on_kafka: Cli) -> None:
    said = on_kafka("doctor", "-o", "ndjson")
    assert said.code == 4
    assert "loopstream topics create" in found(said, "topics")["do"]
    assert "1 failed" in said.err


@pytest.mark.kafka
def test_a_fresh_deployment_needs_settings_and_a_worker(on_kafka: Cli) -> None:
    assert on_kafka("topics", "create", "--partitions", 3).code == 0
    said = on_kafka("doctor", "-o", "ndjson")
    assert said.code == 0
    assert states(said) == {
        "versions": "ok",
        "kafka": "ok",
        "topics": "ok",
        "replicas": "warn",
        "topic configuration": "ok",
        "rights": "ok",
        "workers": "warn",
        "clocks": "unknown",
        "settings": "warn",
        "dead letters": "ok",
    }
    assert "config push" in found(said, "settings")["do"]
    assert found(said, "workers")["do"].startswith("Start one: loopstream worker --bootstrap")


@pytest.mark.kafka
def test_what_is_wrong_is_found(on_kafka: Cli, bootstrap: str, prefix: str) -> None:
    assert on_kafka("topics", "create", "--partitions", 1).code == 0
    topics = Topics(prefix)
    far = int(time.time() * 1000) + 3_600_000
    event = {"v": 1, "type": "run_started", "run": "r", "time": far}
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    try:
        producer.send(topics.events, json.dumps(event).encode(), partition=0)
        producer.send(topics.config, b'{"historySize":99999}', key=b"greedy")
        producer.send(topics.dead_letters, b"x", partition=0)
        producer.flush(timeout=30)
    finally:
        producer.close()
    member = KafkaConsumer(topics.events, bootstrap_servers=bootstrap, group_id=f"{prefix}.worker")
    try:
        deadline = time.monotonic() + 60
        while not member.assignment() and time.monotonic() < deadline:
            member.poll(timeout_ms=200)
        member.seek(TopicPartition(topics.events, 0), 0)
        member.commit()
        said = on_kafka("doctor", "-o", "ndjson")
    finally:
        member.close()
    assert said.code == 3
    assert states(said) | {"replicas": "warn"} == states(said)
    assert found(said, "settings")["state"] == "fail"
    assert "greedy" in found(said, "settings")["detail"]
    assert found(said, "workers")["detail"] == "1 for 1 partitions"
    assert "1 records" in found(said, "lag")["detail"]
    assert found(said, "clocks")["state"] == "warn"
    assert found(said, "dead letters")["state"] == "warn"


def test_it_knows_all_topics() -> None:
    names = {name for name in dir(Topics) if isinstance(getattr(Topics, name), property)}
    assert set(NAMES) == names


@pytest.mark.kafka
def test_a_table_is_for_people(on_kafka: Cli) -> None:
    said = on_kafka("doctor")
    assert "loopstream topics create" in said.out
    assert "failed" in said.err


@pytest.mark.kafka
def test_settings_that_do_not_do_what_they_say_are_told(on_kafka: Cli) -> None:
    assert on_kafka("topics", "create", "--partitions", 3).code == 0
    Path("agents.json").write_text(
        '{"tools": {"loopDetection": {"enabled": true, "warnThreshold": 3}},'
        ' "agents": {"list": [{"id": "a", "tools": {"loopDetection": {"enabled": "yes"}}}]}}'
    )
    assert on_kafka("config", "push", "agents.json", "--force").code == 0
    line = found(on_kafka("doctor", "-o", "ndjson"), "settings")
    assert line["state"] == "warn"
    assert "*: unknown key: warnThreshold is no setting" in line["detail"]
    assert 'a: ignored: enabled "yes" is not true or false' in line["detail"]


@pytest.mark.kafka
def test_dead_letters_are_told_with_their_codes(on_kafka: Cli, bootstrap: str, prefix: str) -> None:
    assert on_kafka("topics", "create", "--partitions", 3).code == 0
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for code in ("no_fingerprint", "no_fingerprint", "misrouted"):
        letter = {"v": 1, "type": "dead_letter", "code": code, "topic": "t", "partition": 0}
        letter |= {"offset": 0, "index": -1, "sha256": "0" * 64, "append_time": 1}
        headers = [("content-type", b"application/json")]
        producer.send(f"{prefix}.dead-letters", json.dumps(letter).encode(), headers=headers)
    producer.flush()
    producer.close()
    line = found(on_kafka("doctor", "-o", "ndjson"), "dead letters")
    assert line["detail"] == "3 are held: no_fingerprint 2, misrouted 1"
    assert 'profiles=("extended",)' in line["do"]
