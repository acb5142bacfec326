"""A worker that can't start says so in one line; one that can is a Faust application."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from loopstream.runtime.admin import ensure_topics
from loopstream.wire.connection import Connection
from tests.faults.harness import wait_for

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a command with LOOPSTREAM_* settings; ends it after the test."""
    running: list[subprocess.Popen[str]] = []

    def begin(*command: str, **settings: str) -> subprocess.Popen[str]:
        environment = {
            **{name: value for name, value in os.environ.items() if "LOOPSTREAM" not in name},
            **{f"LOOPSTREAM_{name}": value for name, value in settings.items()},
        }
        process = subprocess.Popen(
            [str(BIN / command[0]), *command[1:]],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        running.append(process)
        return process

    yield begin
    for process in running:
        process.kill()
        process.communicate()


def closed_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port


WAYS = [
    pytest.param(("loopstream", "worker"), id="loopstream"),
    pytest.param(("faust", "-A", "loopstream.runtime.app", "worker"), id="faust"),
]


@pytest.mark.slow
@pytest.mark.parametrize("command", WAYS)
def test_kafka_that_is_not_there(start: Start, command: tuple[str, ...]) -> None:
    process = start(*command, BOOTSTRAP=f"127.0.0.1:{closed_port()}", TIMEOUT_S="3")
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 4, output
    assert "no broker answered within 3 s" in output
    assert "LOOPSTREAM_BOOTSTRAP" in output
    assert "Traceback" not in output


@pytest.mark.kafka
@pytest.mark.parametrize("command", WAYS)
def test_topics_that_are_not_there(
    start: Start, bootstrap: str, prefix: str, command: tuple[str, ...]
) -> None:
    process = start(*command, BOOTSTRAP=bootstrap, PREFIX=prefix)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 4, output
    assert f"{prefix}.events" in output
    assert "loopstream topics create" in output
    assert "Traceback" not in output


@pytest.mark.kafka
@pytest.mark.parametrize("command", WAYS)
def test_it_takes_its_partitions_and_leaves_cleanly(
    start: Start, bootstrap: str, prefix: str, command: tuple[str, ...]
) -> None:
    connection = Connection(bootstrap=(bootstrap,))
    ensure_topics(connection, prefix, 3)
    process = start(*command, BOOTSTRAP=bootstrap, PREFIX=prefix)
    wait_for(
        f"pins in all partitions; exit {process.poll()}",
        lambda: process.poll() is not None or events_in(bootstrap, prefix) >= 3,
    )
    told = command[0] == "loopstream"  # Faust's own command shows warnings alone
    if told:
        assert process.stdout is not None
        ready = f"lifecycle: ready: partitions 0-2 of {prefix}.events\n"
        assert process.stdout.readline().endswith(ready)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    assert "Traceback" not in output
    assert output.count("lifecycle: stopped") == told


def events_in(bootstrap: str, prefix: str) -> int:
    from kafka import KafkaConsumer, TopicPartition  # noqa: PLC0415

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None)
    try:
        ends = consumer.end_offsets([TopicPartition(f"{prefix}.events", n) for n in range(3)])
        return sum(ends.values())
    finally:
        consumer.close()
