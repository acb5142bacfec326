"""The ways in which it is started: ``faust worker``, ``loopstream up --demo``."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaConsumer

from tests.e2e.house import House, Process, actions, environment
from tests.e2e.play import hears, name, turns

PREFIX = name()

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]


@pytest.fixture(scope="module", autouse=True)
def demo(
    bootstrap: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[subprocess.Popen[str]]:
    """The demo takes its time: it runs beside the module's other test.

    A deployment is configured all around it, without so much as topics.
    """
    folder = tmp_path_factory.mktemp("demo")
    (folder / "loopstream.toml").write_text(f'bootstrap = "{bootstrap}"\nprefix = "{PREFIX}"\n')
    process = subprocess.Popen(
        [sys.executable, "-m", "loopstream", "up", "--demo"],
        cwd=folder,
        env=environment(LOOPSTREAM_BOOTSTRAP=bootstrap, LOOPSTREAM_PREFIX=PREFIX),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process
    if process.poll() is None:
        process.terminate()
        process.communicate()


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


def test_the_demo_stops_every_loop_and_touches_no_deployment(
    demo: subprocess.Popen[str], bootstrap: str
) -> None:
    out, err = demo.communicate(timeout=200)
    assert demo.returncode == 0, out + err
    assert out.splitlines()[-1] == "looping=5 stopped=5 healthy=4 wrongly_stopped=0"
    for detector in (
        "generic_repeat",
        "known_poll_no_progress",
        "ping_pong",
        "unknown_tool_repeat",
        "compaction_loop_persisted",
    ):
        assert detector in out
    assert "Traceback" not in out + err
    client = KafkaConsumer(bootstrap_servers=bootstrap)
    assert not [topic for topic in client.topics() if topic.startswith((PREFIX, "demo-"))]
    client.close()
