"""What can't work is said in one message that tells what to do, with a documented exit code."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from loopstream.cli import run
from loopstream.config import load
from loopstream.errors import EXIT_KAFKA, EXIT_SETTINGS, EXIT_USAGE
from tests.e2e.house import environment

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]

FILE: Final = "detectors.json"
VERBS: Final = {
    "worker": ["worker"],
    "verdicts": ["verdicts", "--follow"],
    "publish": ["publish", "--sample", "loop"],
    "config push": ["config", "push", FILE],
}
# A busy machine takes its time to start a process; what the process waits for is bounded below.
LONGEST_S: Final = 200


class Ended(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a settings file, and an environment without settings."""
    (tmp_path / FILE).write_text('{"enabled": true}')
    monkeypatch.chdir(tmp_path)
    for name in ("BOOTSTRAP", "PREFIX", "CONFIG"):
        monkeypatch.delenv(f"LOOPSTREAM_{name}", raising=False)
    return tmp_path


def start(folder: Path, arguments: list[str]) -> Ended:
    """Run a command to its end, as an operator would."""
    done = subprocess.run(
        [sys.executable, "-m", "loopstream", *arguments],
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def start_all(folder: Path, *commands: list[str]) -> list[Ended]:
    """Run commands side by side."""
    with ThreadPoolExecutor(len(commands)) as pool:
        return list(pool.map(lambda command: start(folder, command), commands))


@contextlib.contextmanager
def address(*, listens: bool) -> Iterator[str]:
    """A port that nobody serves: connections are refused, or taken and never answered."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        if listens:
            held.listen()
        yield f"127.0.0.1:{held.getsockname()[1]}"


def assert_told(ended: Ended, code: int, *parts: str) -> None:
    """One message, at most one hint below it, nothing else."""
    assert ended.code == code, ended
    assert ended.out == "", ended
    first, *hint = ended.err.splitlines()
    assert first.startswith("loopstream: "), ended
    assert len(hint) <= 1, ended
    assert all(line.startswith("  ") for line in hint), ended
    for part in parts:
        assert part in ended.err, ended


def test_kafka_is_unreachable(folder: Path) -> None:
    # With what they take to start and end, all commands stay within 15 s.
    assert load().settings.timeout_s <= 10
    with address(listens=False) as nobody, address(listens=True) as silent:
        asked = [(verb, where) for verb in VERBS.values() for where in (nobody, silent)]
        ended = start_all(folder, *([*verb, "--bootstrap", where] for verb, where in asked))
    for (_, where), end in zip(asked, ended, strict=True):
        assert_told(end, EXIT_KAFKA, where, "LOOPSTREAM_BOOTSTRAP")


def test_a_topic_is_missing(bootstrap: str, prefix: str, folder: Path) -> None:
    where = ["--bootstrap", bootstrap, "--prefix", prefix]
    for ended in start_all(folder, *([*verb, *where] for verb in VERBS.values())):
        assert_told(ended, EXIT_KAFKA, prefix, "loopstream topics create")


@pytest.mark.parametrize("verb", VERBS.values(), ids=list(VERBS))
def test_settings_are_wrong(
    verb: list[str],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def told(*more: str) -> Ended:
        code = run([*verb, *more])
        return Ended(code, *capsys.readouterr())

    assert_told(told("--set", "no equals sign"), EXIT_USAGE, "--set")
    assert_told(told("--prefix", "a b"), EXIT_SETTINGS, "prefix")
    with monkeypatch.context() as patched:
        patched.setenv("LOOPSTREAM_WORKER__SESSION_TIMEOUT_S", "-1")
        assert_told(told(), EXIT_SETTINGS, "LOOPSTREAM_WORKER__SESSION_TIMEOUT_S")
    (folder / "loopstream.toml").write_text("[worker]\ncheckpoint_interval = 3\n")
    assert_told(told(), EXIT_SETTINGS, "worker.checkpoint_interval", "loopstream.toml:2")
