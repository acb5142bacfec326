"""The ways in which it is started: ``faust worker``, ``loopstream up --demo``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.house import House, Process, actions, environment
from tests.e2e.play import hears, name, turns

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]


def test_faust_worker_starts_and_judges(bootstrap: str, prefix: str, tmp_path: Path) -> None:
    house, run_id = House(bootstrap, prefix, tmp_path, blocks={"enabled": True}), name()
    try:
        env = environment(LOOPSTREAM_BOOTSTRAP=bootstrap, LOOPSTREAM_PREFIX=prefix)
        command = [sys.executable, "-m", "faust", "-A", "loopstream.runtime.app", "worker"]
        worker = Process(tmp_path / "faust.log", [*command, "--loglevel", "warn"], env)
        house.workers.append(worker)
        house.await_answer(worker)
        with house.runner("coder") as runner, runner.run(run_id) as run:
            turns(run, 20)
            hears(runner, 2)
        house.settle()
        assert actions(house.verdicts(run_id)) == [
            ("warn", "generic_repeat", 10),
            ("block", "generic_repeat", 20),
        ]
        assert worker.stop() == 0, str(worker)
        assert "Traceback" not in worker.said
    finally:
        house.close()


def test_the_demo_stops_every_loop_and_no_work(bootstrap: str, prefix: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "loopstream", "up", "--demo", "--prefix", prefix]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment(LOOPSTREAM_BOOTSTRAP=bootstrap),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "looping=5 stopped=5 healthy=4 wrongly_stopped=0"
    for detector in (
        "generic_repeat",
        "known_poll_no_progress",
        "ping_pong",
        "unknown_tool_repeat",
        "compaction_loop_persisted",
    ):
        assert detector in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
