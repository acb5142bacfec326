"""One settings block for everybody: worker, SDK and command line log in by every mechanism."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from loopstream.config import load
from loopstream.sdk import Runner
from tests.e2e.house import environment, wait_for
from tests.security.conftest import MECHANISMS, PASSWORD, Fort

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]


def command(
    fort: Fort, block: Mapping[str, str], *words: str, listener: str = "LOGIN"
) -> tuple[list[str], dict[str, str]]:
    """A command line, and the environment that holds its settings."""
    env = {f"LOOPSTREAM_SECURITY__{key.upper()}": value for key, value in block.items()}
    env |= {"LOOPSTREAM_BOOTSTRAP": fort.broker.address(listener), "LOOPSTREAM_PREFIX": "works"}
    return [sys.executable, "-m", "loopstream", *words], environment(**env)


def said(
    fort: Fort, block: Mapping[str, str], *words: str, listener: str = "LOGIN"
) -> subprocess.CompletedProcess[str]:
    line, env = command(fort, block, *words, listener=listener)
    done = subprocess.run(
        line, env=env, cwd=fort.folder, capture_output=True, text=True, timeout=90, check=False
    )
    assert PASSWORD not in done.stdout + done.stderr
    return done


@contextmanager
def worker(fort: Fort, block: Mapping[str, str], log: Path, listener: str) -> Iterator[None]:
    line, env = command(fort, block, "worker", listener=listener)
    env["LOOPSTREAM_LOG__LEVEL"] = "info"
    with log.open("wb") as out:
        process = subprocess.Popen(line, env=env, cwd=fort.folder, stdout=out, stderr=out)
    try:
        yield
        assert process.poll() is None, log.read_text()
        process.terminate()
        assert process.wait(60) == 0, log.read_text()
        assert PASSWORD not in log.read_text()
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("way", [*MECHANISMS, "mTLS"])
def test_a_gate_is_answered(fort: Fort, tenants: tuple[str, ...], way: str, tmp_path: Path) -> None:
    listener = "MUTUAL" if way == "mTLS" else "LOGIN"

    def block(user: str) -> dict[str, str]:
        return fort.mutual(user) if way == "mTLS" else fort.security(user, way)

    values = {f"security.{key}": value for key, value in block("works-runner").items()}
    values["bootstrap"] = fort.broker.address(listener)
    connection = load(values).settings.connection
    with (
        worker(fort, block("works-worker"), tmp_path / "worker.log", listener),
        Runner(connection, agent="coder", prefix="works", fail="closed") as runner,
        runner.run() as run,
    ):
        wait_for("an answer", lambda: run.before_call("exec", {"n": 1}, wait=5).allowed)
        assert runner.counters["events_dropped"] == 0
    shown = said(fort, block("works-forensics"), "replay", "-o", "ndjson", listener=listener)
    assert shown.returncode == 0, shown.stderr


@pytest.mark.parametrize("wrong", ["password", "authority", "nothing"])
def test_a_bad_login_is_one_clear_error(fort: Fort, tenants: tuple[str, ...], wrong: str) -> None:
    block = fort.security("works-operator")
    if wrong == "password":
        block["password"] = "no secret"
    elif wrong == "authority":
        del block["cafile"]
    else:
        block = {}
    done = said(fort, block, "topics", "show")
    assert done.returncode == 4, done.stderr
    assert "Traceback" not in done.stderr


def test_secrets_are_masked(fort: Fort) -> None:
    done = said(fort, fort.security("works-worker"), "config", "show", "-o", "json")
    assert done.returncode == 0, done.stderr
    shown = {row["setting"]: row["value"] for row in json.loads(done.stdout)}
    assert shown["security.username"] == "works-worker"
    assert shown["security.password"]
