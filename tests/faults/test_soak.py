"""The soak in short, and that its oracle finds what is wrong."""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer

from loopstream.events import Verdict
from loopstream.partition import Partition
from loopstream.policy.deployment import Deployment
from loopstream.runtime.admin import ensure_topics
from loopstream.runtime.topics import Topics
from loopstream.wire.codec import encode_frame, pack_frame
from loopstream.wire.connection import Connection
from loopstream.wire.routing import partition_of
from loopstream.wire.verdicts import encode_model
from tests.faults.soak.oracle import Oracle, Reader
from tests.faults.soak.plan import KINDS, PER_HOUR, draw
from tests.faults.soak.report import page
from tests.faults.soak.soak import Soak
from tests.partition.driver import Sources
from tests.replay.traffic import looping

PARTITIONS = 2


@pytest.mark.kafka
@pytest.mark.timeout(420)
def test_a_short_soak_loses_nothing(tmp_path: Path) -> None:
    options = argparse.Namespace(
        minutes=0.75,
        seed=11,
        intensity=1.0,
        faults=("kill", "join", "restart", "settings", "command", "poison"),
        per_second=300,
        runs=200,
        workers=2,
        partitions=4,
    )
    with Soak(options, tmp_path, "a test") as soak:
        outcome = soak.run()
    told = page(outcome)
    assert outcome.clean, told
    assert {"kill", "join", "leave", "restart", "poison"} <= outcome.faults.keys(), told
    assert outcome.letters, told
    assert told.count(outcome.closing_line()) == 1


def test_a_plan_is_drawn_from_its_seed_alone() -> None:
    assert draw(5, 10, KINDS) == draw(5, 10, KINDS) != draw(6, 10, KINDS)
    assert {fault.kind for fault in draw(5, 1, KINDS)} == PER_HOUR.keys()
    assert [fault.kind for fault in draw(5, 1, ("zombie", "poison"))] == ["zombie"]


class Bus:
    """Topics on which this test plays the workers."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self.topics = Topics(prefix)
        ensure_topics(Connection(bootstrap=(bootstrap,)), prefix, PARTITIONS)
        self._bootstrap = bootstrap
        self._producer = KafkaProducer(bootstrap_servers=bootstrap)
        self.verdicts: list[tuple[int, str, Verdict]] = []
        self.rows: list[tuple[int, bytes, bytes]] = []
        self._fill(Deployment(prefix))

    def write(self, topic: str, partition: int, key: bytes | None, value: bytes) -> None:
        self._producer.send(topic, key=key, value=value, partition=partition).get(30)

    def judge(self) -> tuple[int, int, int, int]:
        """Lost, phantom, duplicate effects, wrong rows."""
        oracle = Oracle(self._bootstrap, self.topics, PARTITIONS)
        found = oracle.judge()
        oracle.close()
        return tuple(map(len, dataclasses.astuple(found)))  # type: ignore[return-value]

    def publish(self) -> None:
        """All that a worker should write."""
        for partition, scope, verdict in self.verdicts:
            self.write(self.topics.verdicts, partition, scope.encode(), encode_model(verdict))
        for partition, key, row in self.rows:
            self.write(self.topics.changelog, partition, key, row)

    def close(self) -> None:
        self._producer.close()

    def _fill(self, deployment: Deployment) -> None:
        sources = Sources()
        sources.push("config", "*", {"enabled": True})
        self._producer.send(self.topics.config, key=b"*", value=b'{"enabled": true}').get(30)
        for number in range(PARTITIONS):
            fold = Partition(deployment, number, PARTITIONS, {}, sources)
            pin = fold.pin(int(time.time() * 1000))
            self.write(self.topics.events, number, None, encode_frame([pin]))
        for run in ("a", "b", "c", "d"):
            value = pack_frame(looping(run, turns=22))
            self.write(self.topics.events, partition_of(run, PARTITIONS), None, value)
        reader = Reader(self._bootstrap, self.topics.events, PARTITIONS)
        folds = [Partition(deployment, n, PARTITIONS, {}, sources) for n in range(PARTITIONS)]
        for record in reader.rest():
            assert folds[record.partition].apply(record)
        reader.close()
        for fold in folds:
            self.verdicts += [(fold.number, scope, verdict) for scope, verdict in fold.verdicts]
            self.rows += [(fold.number, key, row) for key, row in fold.take_rows()]


@pytest.fixture
def bus(bootstrap: str, prefix: str) -> Iterator[Bus]:
    bus = Bus(bootstrap, prefix)
    yield bus
    bus.close()


@pytest.mark.kafka
def test_the_oracle_agrees_with_what_is_right(bus: Bus) -> None:
    assert len(bus.verdicts) >= 4 * 3
    assert bus.judge() == (len(bus.verdicts), 0, 0, 4), "nothing was published yet"
    bus.publish()
    assert bus.judge() == (0, 0, 0, 0)
    bus.publish()
    assert bus.judge() == (0, 0, 0, 0), "the same again does no harm"


@pytest.mark.kafka
def test_the_oracle_finds_what_is_wrong(bus: Bus) -> None:
    bus.publish()
    partition, scope, verdict = bus.verdicts[0]

    def say(where: int = partition, **changes: Any) -> None:
        told = verdict.model_copy(update=changes)
        bus.write(bus.topics.verdicts, where, scope.encode(), encode_model(told))

    say(reason="another reason")
    assert bus.judge() == (0, 0, 1, 0)
    say(id="0" * 32)
    assert bus.judge() == (0, 1, 1, 0)
    number, key, row = bus.rows[0]
    bus.write(bus.topics.changelog, number, key, row[:-1] + bytes([row[-1] ^ 1]))
    assert bus.judge() == (0, 1, 1, 1)
    say(where=1 - partition, id="1" * 32)
    assert bus.judge() == (0, 2, 1, 1)
