"""What else is in the logs: settings, forgeries, holes, late rows, rows that went missing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest
from aiokafka import AIOKafkaProducer
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

from loopstream.events import Control
from loopstream.wire.codec import encode_frame
from tests.faults.harness import Cluster, wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]


@pytest.fixture
def cluster(bootstrap: str, prefix: str, tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(bootstrap, prefix, tmp_path)
    yield cluster
    cluster.close()


def test_settings_are_pinned_before_the_first_event_and_sequenced_while_it_runs(
    cluster: Cluster,
) -> None:
    cluster.write(cluster.topics.config, b"*", b'{"enabled":true}')
    worker = cluster.worker()
    wait_for(f"pins; {worker}", lambda: worker.stats.get("pins") == cluster.partitions)
    cluster.produce(500)
    worker.wait_records(500)
    cluster.write(cluster.topics.config, b"*", b'{"enabled":false}')
    cluster.write(cluster.topics.config, b"agent", b'{"enabled":true}')
    wait_for(f"controls; {worker}", lambda: worker.stats.get("controls") == 2 * cluster.partitions)
    cluster.produce(500)
    cluster.wait_committed()
    cluster.outcome().assert_exact()
    types = [
        body["events"][0]["type"]
        for record in cluster.read(cluster.topics.events)
        if type(body := msgpack.unpackb(record.value)) is dict
    ]
    assert types.count("pin") == cluster.partitions
    assert types.count("control") == 2 * cluster.partitions


def test_an_idle_worker_appends_its_pin_once(cluster: Cluster) -> None:
    for _ in range(2):
        worker = cluster.worker()
        worker.wait_lanes(4)
        cluster.wait_committed()
        assert worker.stop() == 0, str(worker)
    assert len(cluster.read(cluster.topics.events)) == cluster.partitions


def test_a_forged_control_record_has_no_effect(cluster: Cluster) -> None:
    cluster.produce(200)
    for offset in (0, 10**12):
        forged = Control(
            v=1,
            type="control",
            time=0,
            source="config",
            offset=offset,
            sha256=hashlib.sha256(b"{}").digest(),
            key="*",
            body="{}",
        )
        cluster.write(cluster.topics.events, b"", encode_frame([forged]), 1)
    cluster.produce(200)
    worker = cluster.worker()
    cluster.wait_committed()
    outcome = cluster.outcome()
    outcome.assert_exact()
    assert len(outcome.dead_letters) == 2, str(worker)


def test_a_late_row_of_a_zombie_is_written_over(cluster: Cluster) -> None:
    cluster.produce(1_000, runs=10)
    worker = cluster.worker()
    cluster.wait_committed()
    assert worker.stop() == 0, str(worker)
    row = next(r for r in cluster.read(cluster.topics.changelog) if r.key.startswith(b"run-"))
    stale = msgpack.packb([1, row.partition, 0, 1, "stale"])
    cluster.write(cluster.topics.changelog, row.key, stale, row.partition)
    worker = cluster.worker()
    wait_for(f"asserted again; {worker}", lambda: worker.stats.get("reasserted") == 1)
    last = [r for r in cluster.read(cluster.topics.changelog) if r.key == row.key][-1]
    assert last.value != stale
    cluster.produce(1_000, runs=10)
    cluster.wait_committed()
    cluster.outcome().assert_exact()


def test_a_row_that_went_missing_stops_the_worker(cluster: Cluster) -> None:
    cluster.produce(500, runs=10)
    worker = cluster.worker()
    cluster.wait_committed()
    assert worker.stop() == 0, str(worker)
    row = next(r for r in cluster.read(cluster.topics.changelog) if r.key.startswith(b"run-"))
    cluster.write(cluster.topics.changelog, row.key, None, row.partition)
    worker = cluster.worker()
    assert worker.wait() == 70, str(worker)
    assert "rows were recovered, the seal says" in worker.log


async def test_markers_of_a_transaction_are_no_missing_records(cluster: Cluster) -> None:
    make: Any = AIOKafkaProducer
    producer = make(bootstrap_servers=cluster.bootstrap, transactional_id=cluster.prefix)
    await producer.start()
    for number in range(3):
        async with producer.transaction():
            for partition in range(cluster.partitions):
                value = msgpack.packb([[f"run-{partition}", number]])
                await producer.send(cluster.topics.events, value, partition=partition)
    await producer.stop()
    cluster.produce(200)
    worker = cluster.worker()
    cluster.wait_committed()
    cluster.outcome().assert_exact()
    assert worker.stats["jumps"] == 3 * cluster.partitions, str(worker)


def test_a_commit_that_is_forgotten_is_no_start_from_the_beginning(cluster: Cluster) -> None:
    """As after a broker's restart, when aiokafka takes "still loading" for "never committed".

    From the beginning, old events would meet what is in force today.
    """
    cluster.produce(600)
    worker = cluster.worker()
    cluster.wait_committed()
    assert worker.stop() == 0, str(worker)
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    admin.delete_groups([f"{cluster.prefix}.worker"])
    admin.close()
    assert cluster.committed() == 0
    cluster.write(cluster.topics.config, b"*", b'{"enabled":true}')
    cluster.produce(200)
    worker = cluster.worker()
    cluster.wait_committed()
    cluster.outcome().assert_exact()
    assert 200 <= worker.stats["records"] < 600, str(worker)


def test_records_that_retention_took_are_passed_over(cluster: Cluster) -> None:
    cluster.produce(400)
    worker = cluster.worker()
    cluster.wait_committed()
    assert worker.stop() == 0, str(worker)
    cluster.produce(400)
    end = max(r.offset for r in cluster.read(cluster.topics.events) if r.partition == 0)
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    admin.delete_records({TopicPartition(cluster.topics.events, 0): end - 5})
    admin.close()
    worker = cluster.worker()
    cluster.wait_committed()
    assert worker.alive, str(worker)


def test_a_static_member_comes_back_without_a_rebalance(cluster: Cluster) -> None:
    settings = {"session_timeout_s": 20.0}
    with cluster.load(400):
        stays = cluster.worker("stays", instance_id="stays", **settings)
        stays.wait_records(200)
        goes = cluster.worker("goes", instance_id="goes", **settings)
        goes.wait_records(200)
        stays.wait_records(stays.stats["records"] + 200)
        before = stays.stats["generation"]
        assert goes.stop() == 0, str(goes)
        again = cluster.worker("again", instance_id="goes", **settings)
        again.wait_records(200)
        stays.wait_records(stays.stats["records"] + 200)
        assert stays.stats["generation"] == before, str(stays)
    cluster.wait_committed()
    cluster.outcome().assert_exact()


def test_a_standby_takes_over(cluster: Cluster) -> None:
    with cluster.load(500):
        first = cluster.worker(standby_replicas=1)
        first.wait_records(300)
        second = cluster.worker(standby_replicas=1)
        second.wait_records(300)
        first.kill()
        second.wait_lanes(4)
        second.wait_records(second.stats["records"] + 300)
    cluster.wait_committed()
    cluster.outcome().assert_exact()


def test_durable_rows_survive_kills_and_are_not_read_again(
    cluster: Cluster, tmp_path: Path
) -> None:
    settings = {"store": "rocksdict", "datadir": str(tmp_path / "rows")}
    with cluster.load(600):
        for _ in range(2):
            worker = cluster.worker(**settings)
            worker.wait_records(500)
            worker.kill()
    worker = cluster.worker(**settings)
    cluster.wait_committed()
    assert worker.stop() == 0, str(worker)
    cluster.outcome().assert_exact()
    written = len(cluster.read(cluster.topics.changelog))
    worker = cluster.worker(log_level="INFO", **settings)
    worker.wait_lanes(cluster.partitions)
    assert "Restoring state from changelog topics" not in worker.log, (written, str(worker))


def test_durable_rows_may_be_deleted_and_may_be_old(cluster: Cluster, tmp_path: Path) -> None:
    old = {"store": "rocksdict", "datadir": str(tmp_path / "old")}
    new = {"store": "rocksdict", "datadir": str(tmp_path / "new")}
    for settings in (old, new, old):
        cluster.produce(800, frame=3)
        worker = cluster.worker(**settings)
        cluster.wait_committed()
        assert worker.stop() == 0, str(worker)
    cluster.outcome().assert_exact()


def test_a_late_row_is_written_over_while_the_owner_idles_and_survives_compaction(
    cluster: Cluster,
) -> None:
    cluster.produce(1_000, runs=10)
    worker = cluster.worker(audit_interval_s=0.5)
    cluster.wait_committed()
    row = next(r for r in cluster.read(cluster.topics.changelog) if r.key.startswith(b"run-"))
    stale = msgpack.packb([1, row.partition, 0, 1, "stale"])
    cluster.write(cluster.topics.changelog, row.key, stale, row.partition)
    wait_for(f"written over; {worker}", lambda: worker.stats.get("reasserted") == 1)
    assert worker.stop() == 0, str(worker)
    compact(cluster, row.partition)
    cluster.produce(1_000, runs=10)
    cluster.worker()
    cluster.wait_committed()
    cluster.outcome().assert_exact()


def compact(cluster: Cluster, partition: int) -> None:
    """Have the broker compact the changelog down to the last records."""
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    configs = {
        "min.compaction.lag.ms": "0",
        "min.cleanable.dirty.ratio": "0.001",
        "segment.ms": "100",
        "max.compaction.lag.ms": "100",
    }
    resource = ConfigResource(ConfigResourceType.TOPIC, cluster.topics.changelog, configs=configs)
    admin.alter_configs([resource])
    admin.close()

    def records() -> int:
        # A write closes the old segment; only closed segments are compacted.
        cluster.write(cluster.topics.changelog, b"\xfffiller", None, partition)
        return len(cluster.read(cluster.topics.changelog))

    before = records()
    wait_for("compaction", lambda: records() < before, 60)
