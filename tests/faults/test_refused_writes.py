"""Output that is refused ends the worker before it commits; the next one goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.cluster import refusing
from tests.faults.harness import Cluster

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]


@pytest.fixture
def cluster(bootstrap: str, prefix: str, tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(bootstrap, prefix, tmp_path, partitions=2)
    yield cluster
    cluster.close()


@pytest.mark.parametrize("topic", ["verdicts", "changelog", "dead_letters"])
def test_the_broker_begins_to_refuse_in_mid_run(cluster: Cluster, topic: str) -> None:
    with cluster.load(300, poison=0.02):
        worker = cluster.worker()
        worker.wait_records(300)
        with refusing(cluster.bootstrap, getattr(cluster.topics, topic)):
            assert worker.wait() == 70, str(worker)
            # What was never confirmed is not committed either.
            assert cluster.committed() <= worker.stats["records"], str(worker)
        cluster.worker().wait_records(300)
    cluster.wait_committed()
    cluster.outcome().assert_exact()


def test_the_disk_under_the_durable_store_is_full(cluster: Cluster, tmp_path: Path) -> None:
    store = {"store": "rocksdict", "datadir": str(tmp_path / "rows")}
    with cluster.load(400, runs=400):
        worker = cluster.worker(**store)
        worker.wait_records(300)
        assert worker.stop() == 0, str(worker)
        worker = cluster.worker(**store, file_size=96 * 1024)
        assert worker.wait() == 70, str(worker)
        assert "File too large" in worker.log, str(worker)
        cluster.worker(**store).wait_records(300)
    cluster.wait_committed()
    cluster.outcome().assert_exact()


@pytest.mark.parametrize("days", [-1, 1])
def test_a_workers_clock_is_a_day_off(cluster: Cluster, days: int) -> None:
    with cluster.load(300):
        worker = cluster.worker(clock_skew_s=days * 86_400.0)
        worker.wait_records(400)
        worker.kill()
        cluster.worker().wait_records(300)
    cluster.wait_committed()
    cluster.outcome().assert_exact()
