"""The broker dies, is away, or is hard to reach: nothing lost, effects once.

Workers may end with 70 while it is away (their supervisor starts them again) or live through it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopstream.broker import EmbeddedKafka, Listener
from tests.faults.cluster import supervise
from tests.faults.harness import Cluster
from tests.faults.proxy import Proxy

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

AWAY_S = 15.0


@pytest.fixture(scope="module")
def proxy() -> Iterator[Proxy]:
    with Proxy() as proxy:
        yield proxy


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory, proxy: Proxy) -> Iterator[EmbeddedKafka]:
    """A broker that these tests may kill; its second listener is behind the proxy."""
    behind = Listener("PROXIED", advertised_port=proxy.port)
    with EmbeddedKafka(tmp_path_factory.mktemp("kafka"), listeners=[behind]) as broker:
        proxy.lead_to(broker.address("PROXIED"))
        yield broker


@pytest.fixture
def cluster(mortal: EmbeddedKafka, proxy: Proxy, prefix: str, tmp_path: Path) -> Iterator[Cluster]:
    proxy.swallow, proxy.delay_s = False, 0.0
    cluster = Cluster(mortal.bootstrap, prefix, tmp_path, partitions=2)
    yield cluster
    proxy.swallow, proxy.delay_s = False, 0.0
    cluster.close()


@pytest.mark.parametrize("away_s", [0.0, AWAY_S])
def test_the_broker_is_killed_and_comes_back(
    cluster: Cluster, mortal: EmbeddedKafka, away_s: float
) -> None:
    with cluster.load(300) as sent:
        worker = cluster.worker()
        worker.wait_records(300)
        mortal.kill()
        time.sleep(away_s)
        mortal.start(timeout=120)
        goal = sent.total() + 300
        supervise(cluster, f"work goes on; {worker}", lambda: sent.total() > goal)
    supervise(cluster, "all is committed")
    cluster.outcome().assert_exact()


@pytest.mark.parametrize("who", ["worker", "producer"])
@pytest.mark.parametrize("how", ["delay", "cut", "blackhole"])
def test_the_way_to_the_broker_is_bad(cluster: Cluster, proxy: Proxy, who: str, how: str) -> None:
    way = {"worker": "bootstrap", "producer": "producer_bootstrap"}[who]
    settings = {way: proxy.address, "instance_id": "w"}
    with cluster.load(200):
        worker = cluster.worker(**settings)
        worker.wait_records(200)
        hinder(proxy, how)
        goal = cluster.committed() + 300
        supervise(
            cluster,
            f"work goes on; {worker}",
            lambda: cluster.committed() > goal,
            settings=settings,
        )
    supervise(cluster, "all is committed", settings=settings)
    assert proxy.connections
    cluster.outcome().assert_exact()


def hinder(proxy: Proxy, how: str) -> None:
    if how == "delay":
        proxy.delay_s = 0.3
    elif how == "cut":
        for _ in range(5):
            proxy.cut()
            time.sleep(0.5)
    else:
        proxy.swallow = True
        time.sleep(AWAY_S)
        proxy.swallow = False
