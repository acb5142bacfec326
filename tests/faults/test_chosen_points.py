"""kill -9 at each point of the checkpoint's order: nothing lost, effects once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.harness import Cluster
from tests.faults.hooks import POINTS

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]


@pytest.fixture
def cluster(bootstrap: str, prefix: str, tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(bootstrap, prefix, tmp_path, partitions=2)
    yield cluster
    cluster.close()


@pytest.mark.parametrize("point", POINTS)
def test_a_worker_dies_there_twice(cluster: Cluster, point: str) -> None:
    with cluster.load(300):
        for count in (3, 7):
            worker = cluster.worker(die=(point, count), instance_id="w")
            assert worker.wait() == -signal.SIGKILL, str(worker)
    cluster.worker(instance_id="w")
    cluster.wait_committed()
    cluster.outcome().assert_exact()
