"""The broker of a benchmark, its topics, and what can be read off them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

from benchmarks.kit.process import Worker
from benchmarks.kit.waiting import wait_for
from loopstream.broker import EmbeddedKafka
from loopstream.runtime.admin import ensure_topics
from loopstream.runtime.topics import Topics
from loopstream.wire.connection import Connection

PARTITIONS: Final = 4
HEAP_MB: Final = 1024


@contextmanager
def broker() -> Iterator[str]:
    """``host:port`` of the cluster in LOOPSTREAM_BOOTSTRAP, else of an embedded broker."""
    given = os.environ.get("LOOPSTREAM_BOOTSTRAP")
    if given:
        yield given
        return
    with EmbeddedKafka(heap_mb=HEAP_MB) as embedded:
        yield embedded.bootstrap


def prepare(bootstrap: str, prefix: str, block: dict[str, object] | None = None) -> Topics:
    """The topics of a prefix, and detection switched on for all agents."""
    ensure_topics(Connection(bootstrap=(bootstrap,)), prefix, PARTITIONS)
    topics = Topics(prefix)
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    value = json.dumps({"enabled": True, **(block or {})}).encode()
    producer.send(topics.config, key=b"*", value=value).get(30)
    producer.close()
    return topics


def create(bootstrap: str, topic: str) -> None:
    """One more topic."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])
    admin.close()


def delete_all(bootstrap: str, beginning: str) -> None:
    """Topics of earlier rounds: their files would crowd the page cache."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    names = [name for name in admin.list_topics() if name.startswith(beginning)]
    if names:
        admin.delete_topics(names)
    admin.close()


def log_bytes(bootstrap: str, *marks: str) -> int:
    """Bytes on the broker's disk of the topics whose names have all of these marks in them."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    told = admin.describe_log_dirs()
    admin.close()
    return sum(
        partition["partition_size"]
        for node in told
        for folder in node["log_dirs"]
        for topic in folder["topics"]
        if all(mark in topic["name"] for mark in marks)
        for partition in topic["partitions"]
    )


class Group:
    """How far a worker group is: read without joining it."""

    def __init__(self, bootstrap: str, topics: Topics) -> None:
        self._client = KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=f"{topics.prefix}.worker",
            enable_auto_commit=False,
        )
        self._parts = [TopicPartition(topics.events, number) for number in range(PARTITIONS)]

    def lag(self) -> dict[int, int]:
        """Records that are not committed yet, by partition."""
        ends = self._client.end_offsets(self._parts)
        return {tp.partition: ends[tp] - (self._client.committed(tp) or 0) for tp in self._parts}

    def wait_done(self, worker: Worker, timeout_s: float) -> None:
        """Wait until everything is committed.

        Raises:
            RuntimeError: the worker has ended.
            TimeoutError: it never was.
        """

        def done() -> bool:
            worker.must_live()
            return not any(self.lag().values())

        wait_for("all is committed", done, timeout_s, 0.1)

    def close(self) -> None:
        """Let go of Kafka."""
        self._client.close(autocommit=False)
