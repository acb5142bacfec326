"""A row that this version can't read: one clear error, nothing judged from half a state."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import msgpack
import pytest
from kafka import KafkaProducer

from tests.e2e.house import Ear, House, Process, wait_for
from tests.replay.traffic import looping

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]


@pytest.fixture
def house(bootstrap: str, prefix: str, tmp_path: Path) -> Iterator[House]:
    house = House(bootstrap, prefix, tmp_path, blocks={"enabled": True})
    yield house
    house.close()


@pytest.mark.parametrize("version", [0, 99])
def test_a_row_of_another_version_stops_the_worker(house: House, version: int) -> None:
    worker = house.start()
    house.send_frame(looping("old", turns=3))
    house.settle()
    assert worker.stop() == 0, str(worker)
    reversion(house, b"old", version)
    before = house.lag()
    house.send_frame(looping("old", turns=3))
    worker = Process(house.folder / "again.log", command(house))
    house.workers.append(worker)
    wait_for(f"it gives up; {worker}", lambda: not worker.alive)
    assert worker.stop() == 70, str(worker)
    assert f"a row of version {version}" in worker.said, str(worker)
    assert house.lag() > before, "the event is not committed"


def command(house: House) -> list[str]:
    return [sys.executable, "-m", "loopstream", "worker", *house.arguments()]


def reversion(house: House, key: bytes, version: int) -> None:
    """Write the last row of a run again, as another version would have."""
    ear = Ear(house.bootstrap, house.topics.changelog)
    ear.catch_up()
    ear.close()
    row = [record for record in ear.records if record.key == key][-1]
    value = msgpack.packb([version, *msgpack.unpackb(row.value, strict_map_key=False)[1:]])
    producer = KafkaProducer(bootstrap_servers=house.bootstrap)
    producer.send(house.topics.changelog, key=key, value=value, partition=row.partition).get(30)
    producer.close()
