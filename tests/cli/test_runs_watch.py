from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from kafka import KafkaProducer

from loopstream.wire.routing import partition_of
from tests.cli.conftest import Cli

pytestmark = pytest.mark.kafka


def write(producer: KafkaProducer, prefix: str, run: str, status: str, agent: str) -> None:
    row = {"scope": run, "run": run, "status": status, "agent": agent, "last_event": 1}
    value = json.dumps(row | {"partition": 0, "offset": 7}).encode()
    partition = partition_of(run, 2)
    sent = producer.send(f"{prefix}.runs", key=run.encode(), value=value, partition=partition)
    sent.get(timeout=30)


def test_each_change_is_a_line_until_it_is_interrupted(
    on_kafka: Cli, bootstrap: str, prefix: str, tmp_path: Path
) -> None:
    assert on_kafka("topics", "create", "--partitions", 2).code == 0
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    command = [sys.executable, "-m", "loopstream", "runs", "list", "--watch", "-o", "ndjson"]
    where = ["--bootstrap", bootstrap, "--prefix", prefix, "--agent", "a"]
    try:
        write(producer, prefix, "r1", "active", "a")
        with subprocess.Popen([*command, *where], stdout=subprocess.PIPE, cwd=tmp_path) as watch:
            assert watch.stdout is not None
            first = json.loads(watch.stdout.readline())
            write(producer, prefix, "r2", "blocked", "b")
            write(producer, prefix, "r1", "blocked", "a")
            second = json.loads(watch.stdout.readline())
            watch.send_signal(signal.SIGINT)
            assert watch.wait(60) == 0
    finally:
        producer.close()
    assert [(row["run"], row["status"]) for row in (first, second)] == [
        ("r1", "active"),
        ("r1", "blocked"),
    ]


def test_a_watch_that_is_one_json_array_makes_no_sense(cli: Cli) -> None:
    said = cli("runs", "list", "--watch", "-o", "json")
    assert said.code == 2
    assert "ndjson" in said.err
