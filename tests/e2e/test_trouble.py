"""What can't work is said in one message that tells what to do, with a documented exit code."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from loopstream.errors import EXIT_KAFKA, EXIT_SETTINGS, EXIT_USAGE
from tests.e2e.house import environment

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]

BLOCK: Final = "detectors.json"
VERBS: Final = {
    "worker": ["worker"],
    "verdicts": ["verdicts", "--follow"],
    "publish": ["publish", "--sample", "loop"],
    "config push": ["config", "push", BLOCK],
}
# Ten seconds is what a command waits for Kafka unless it is told otherwise; a busy machine may
# take its time to start a process.
LONGEST_S: Final = 60


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str
    took_s: float


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address at which nothing listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


@pytest.fixture
def silent() -> Iterator[str]:
    """An address that takes connections and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield f"127.0.0.1:{server.getsockname()[1]}"


def run_all(folder: Path, *more: str, **env: str) -> dict[str, Ended]:
    """Run all verbs at once, each as an operator would."""
    (folder / BLOCK).write_text('{"enabled": true}')

    def run(arguments: list[str]) -> Ended:
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "loopstream", *arguments, *more],
            cwd=folder,
            env=environment(**env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr, time.monotonic() - began)

    with ThreadPoolExecutor() as pool:
        return dict(zip(VERBS, pool.map(run, VERBS.values()), strict=True))


def assert_told(ended: dict[str, Ended], code: int, *parts: str) -> None:
    for verb, end in ended.items():
        told = f"{verb}: {end}"
        assert end.code == code, told
        assert end.out == "", told
        first, *rest = end.err.splitlines()
        assert first.startswith("loopstream: "), told
        assert len(rest) <= 1, told
        assert all(line.startswith("  ") for line in rest), told
        for part in parts:
            assert part in end.err, told


@pytest.mark.parametrize("address", ["nobody", "silent"])
def test_kafka_is_unreachable(address: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    where: str = request.getfixturevalue(address)
    ended = run_all(tmp_path, "--bootstrap", where)
    assert_told(ended, EXIT_KAFKA, where, "LOOPSTREAM_BOOTSTRAP")


def test_a_topic_is_missing(bootstrap: str, prefix: str, tmp_path: Path) -> None:
    ended = run_all(tmp_path, "--bootstrap", bootstrap, "--prefix", prefix)
    assert_told(ended, EXIT_KAFKA, prefix, "loopstream topics create")


def test_a_setting_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "loopstream.toml").write_text("[worker]\ncheckpoint_interval = 3\n")
    assert_told(run_all(tmp_path), EXIT_SETTINGS, "checkpoint_interval", "loopstream.toml:2")


def test_a_setting_is_out_of_bounds(tmp_path: Path) -> None:
    ended = run_all(tmp_path, LOOPSTREAM_WORKER__SESSION_TIMEOUT_S="-1")
    assert_told(ended, EXIT_SETTINGS, "session_timeout_s", "LOOPSTREAM_WORKER__SESSION_TIMEOUT_S")


def test_a_prefix_that_no_topic_can_have(tmp_path: Path) -> None:
    assert_told(run_all(tmp_path, "--prefix", "a b"), EXIT_SETTINGS, "prefix")


def test_the_command_line_makes_no_sense(tmp_path: Path) -> None:
    ended = run_all(tmp_path, "--set", "no equals sign")
    assert_told(ended, EXIT_USAGE, "--set")


def test_the_brokers_want_a_secure_connection(bootstrap: str, tmp_path: Path) -> None:
    ended = run_all(tmp_path, "--bootstrap", bootstrap, "--set", "security.protocol=SSL")
    assert_told(ended, EXIT_KAFKA, bootstrap)


def test_partitions_are_not_those_of_the_settings(
    bootstrap: str, prefix: str, tmp_path: Path
) -> None:
    base = [sys.executable, "-m", "loopstream"]
    where = ["--bootstrap", bootstrap, "--prefix", prefix]
    for verb in (["topics", "create", "--partitions", "2"], ["topics", "create"]):
        done = subprocess.run(
            [*base, *verb, *where],
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            check=False,
        )
    assert done.returncode == EXIT_KAFKA, done.stderr
    assert "2 partitions, not 4" in done.stderr


def test_nothing_of_this_session_leaks_into_the_commands() -> None:
    os.environ["LOOPSTREAM_LEAK"] = "1"
    try:
        assert "LOOPSTREAM_LEAK" not in environment()
    finally:
        del os.environ["LOOPSTREAM_LEAK"]
