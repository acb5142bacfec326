"""A worker is a client: nobody can connect to it unless it was told to listen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.e2e.house import House, Process

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(120)]


@pytest.fixture
def house(
    bootstrap: str, prefix: str, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[House]:
    house = House(bootstrap, prefix, tmp_path, blocks={"enabled": True}, values=request.param)
    yield house
    house.close()


def listening(worker: Process) -> list[str]:
    """Addresses that the process, or a child of its, listens on."""
    process = psutil.Process(worker.pid)
    return [
        connection.laddr.ip
        for one in (process, *process.children(recursive=True))
        for connection in one.net_connections()
        if connection.status == psutil.CONN_LISTEN
    ]


@pytest.mark.parametrize(
    ("house", "wanted"),
    [({}, []), ({"worker.metrics_port": "0"}, ["127.0.0.1"])],
    indirect=["house"],
    ids=["by default", "metrics"],
)
def test_a_worker_listens_where_it_was_told_to(house: House, wanted: list[str]) -> None:
    worker = house.start()
    assert listening(worker) == wanted
    assert worker.stop() == 0, str(worker)
