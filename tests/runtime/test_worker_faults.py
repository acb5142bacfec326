"""The worker under faults, on a real broker: nothing lost, effects once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.harness import Cluster, paused

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]


@pytest.fixture
def cluster(bootstrap: str, prefix: str, tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(bootstrap, prefix, tmp_path)
    yield cluster
    cluster.close()


def test_what_is_in_the_topic_is_judged_once(cluster: Cluster) -> None:
    cluster.produce(2_000, frame=5)
    worker = cluster.worker()
    cluster.wait_committed()
    outcome = cluster.outcome()
    outcome.assert_exact()
    assert outcome.seen.total() == len(outcome.seen), str(worker)


def test_kill_twice_under_load(cluster: Cluster) -> None:
    with cluster.load(800):
        for _ in range(2):
            worker = cluster.worker()
            worker.wait_records(600)
            worker.kill()
        cluster.worker().wait_records(600)
    cluster.wait_committed()
    cluster.outcome().assert_exact()


def test_a_worker_joins_and_leaves_under_load(cluster: Cluster) -> None:
    with cluster.load(800):
        stays = cluster.worker()
        stays.wait_records(500)
        comes = cluster.worker()
        comes.wait_records(300)
        assert comes.stop() == 0, str(comes)
        before = stays.stats["records"]
        stays.wait_records(before + 500)
    cluster.wait_committed()
    cluster.outcome().assert_exact()


def test_sigterm_under_load_drains_and_the_next_worker_goes_on(cluster: Cluster) -> None:
    with cluster.load(800):
        worker = cluster.worker()
        worker.wait_records(500)
        started = time.monotonic()
        assert worker.stop() == 0, str(worker)
        took = time.monotonic() - started
        assert took < 10, f"{took:.1f} s\n{worker}"
        assert cluster.committed() == sum(worker.stats["lanes"].values()), str(worker)
        cluster.worker().wait_records(500)
    cluster.wait_committed()
    outcome = cluster.outcome()
    outcome.assert_exact()
    assert outcome.seen.total() == len(outcome.seen), "a drained stop repeats nothing"


def test_a_zombie_does_no_harm(cluster: Cluster) -> None:
    with cluster.load(500):
        zombie = cluster.worker()
        zombie.wait_records(300)
        with paused(zombie, 8.0):
            heir = cluster.worker()
            heir.wait_records(300)
        before = heir.stats["records"]
        heir.wait_records(before + 300)
    assert zombie.wait(30) == 70, str(zombie)
    cluster.wait_committed()
    cluster.outcome().assert_exact()


def test_a_refused_verdict_ends_the_worker_before_a_commit(cluster: Cluster) -> None:
    cluster.produce(500, runs=5)
    worker = cluster.worker(padding=1_100_000)
    assert worker.wait() == 70, str(worker)
    assert cluster.committed() == 0, str(worker)
    cluster.worker()
    cluster.wait_committed()
    cluster.outcome().assert_exact()


def test_poison_costs_no_neighbour(cluster: Cluster) -> None:
    with cluster.load(800, poison=0.05) as sent:
        worker = cluster.worker()
        worker.wait_records(1_000)
    cluster.wait_committed()
    outcome = cluster.outcome()
    outcome.assert_exact()
    assert len(outcome.dead_letters) >= sent["poison"] * 0.9, str(worker)
