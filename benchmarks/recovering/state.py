"""Makes a deployment's state the honest way: a worker judges events, then leaves."""

from __future__ import annotations

from itertools import islice
from typing import Final

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

from benchmarks import work
from benchmarks.kit import feed
from benchmarks.kit.kafka import PARTITIONS, Group
from benchmarks.kit.process import Worker
from benchmarks.kit.waiting import wait_for
from loopstream.runtime.topics import Topics

FILLED_S: Final = 1_800.0
COMPACTED_S: Final = 900.0
FILLER: Final = b"\xfffiller"


def fill(bootstrap: str, topics: Topics, runs: int, laps: int) -> None:
    """A row for each run, each written once a lap: a lap's events are one call and its outcome."""
    events = work.engine_events(2 * runs * laps, runs)
    group = Group(bootstrap, topics)
    with Worker(bootstrap, topics.prefix, worker__checkpoint_interval_s=0.5) as worker:
        worker.wait_ready()
        for _ in range(laps):
            lap = feed.framed(islice(events, 2 * runs), "frames of 50", work.engine_record)
            feed.write(bootstrap, topics.events, lap)
            group.wait_done(worker, FILLED_S)
    group.close()


def changelog(bootstrap: str, topics: Topics) -> int:
    """Records that a reader finds in the changelog."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
    parts = [TopicPartition(topics.changelog, number) for number in range(PARTITIONS)]
    consumer.assign(parts)
    consumer.seek_to_beginning(*parts)
    ends = consumer.end_offsets(parts)
    records = 0
    while any((consumer.position(part) or 0) < ends[part] for part in parts):
        records += sum(map(len, consumer.poll(500, max_records=10_000).values()))
    consumer.close()
    return records


def compact(bootstrap: str, topics: Topics, rows: int) -> None:
    """Have the broker compact the changelog down to little more than a record a row.

    Raises:
        TimeoutError: it did not.
    """
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    configs = {
        "min.compaction.lag.ms": "0",
        "min.cleanable.dirty.ratio": "0.001",
        "segment.ms": "100",
        "max.compaction.lag.ms": "100",
    }
    resource = ConfigResource(ConfigResourceType.TOPIC, topics.changelog, configs=configs)
    admin.alter_configs([resource])
    producer = KafkaProducer(bootstrap_servers=bootstrap)

    def compacted() -> bool:
        # A write closes the old segment; only closed segments are compacted.
        for number in range(PARTITIONS):
            producer.send(topics.changelog, key=FILLER, value=None, partition=number)
        producer.flush()
        return changelog(bootstrap, topics) < rows * 1.1 + 1_000

    wait_for("compaction", compacted, COMPACTED_S, 2.0)
    resource = ConfigResource(
        ConfigResourceType.TOPIC, topics.changelog, configs={**configs, "segment.ms": "604800000"}
    )
    admin.alter_configs([resource])
    producer.close()
    admin.close()
