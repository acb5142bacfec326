"""Replayed verdicts are the recorded ones, byte for byte, whatever happened to the workers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.replay.cluster import Cluster
from tests.replay.traffic import healthy, interleaved, looping

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]


def push(on_kafka: Cli, tmp_path: Path, **block: object) -> None:
    file = tmp_path / "agents.json"
    file.write_text(json.dumps(block))
    assert on_kafka("config", "push", file).code == 0


def fleet(name: str, count: int) -> list[str]:
    return [f"{name}-{number}" for number in range(count)]


def test_replay_equals_recorded_through_kills_restarts_and_rebalances(
    cluster: Cluster, on_kafka: Cli, tmp_path: Path
) -> None:
    push(on_kafka, tmp_path, enabled=True)
    early, late, last = fleet("early", 12), fleet("late", 12), fleet("last", 12)
    # Some events are there before any worker is: the pin stands behind them.
    cluster.send(interleaved([looping(run) for run in early[:6]]), frame=7)
    first = cluster.worker()
    cluster.wait_judged(early[:6])
    cluster.send(interleaved([looping(run) for run in early[6:]]), frame=3)
    first.kill()
    first.wait()
    second = cluster.worker()
    modes = {"generic_repeat": "shadow", "ping_pong": "warn"}
    push(on_kafka, tmp_path, enabled=True, warningThreshold=4, criticalThreshold=8, modes=modes)
    cluster.send(interleaved([looping(run, agent="other") for run in late]))
    third = cluster.worker()
    cluster.wait_judged([*early, *late])
    second.kill()
    second.wait()
    healthy_runs = [healthy(run) for run in fleet("fine", 6)]
    cluster.send(interleaved([looping(run) for run in last] + healthy_runs), frame=5)
    cluster.wait_judged(last)
    cluster.stop(third)

    replayed = on_kafka("replay", "--out", tmp_path / "now.ndjson", "--processes", 2)
    assert replayed.code == 0, replayed.err
    found = on_kafka("diff", tmp_path / "now.ndjson", "recorded", "--fail-on", "any", "-o", "json")
    assert found.code == 0, found.out
    counts = found.json["counts"]
    recorded = {v.id for v in cluster.verdicts()}
    assert counts["same"] == len(recorded) == found.json["sides"]["a"]
    assert found.json["differences"] == 0
    assert {v.run for v in cluster.verdicts()} == {*early, *late, *last}
    assert {v.threshold for v in cluster.verdicts() if v.run in late} <= {4, 8, 10, 20}


def test_what_is_done_in_one_process_or_two_or_resumed_is_the_same(
    cluster: Cluster, on_kafka: Cli, tmp_path: Path
) -> None:
    push(on_kafka, tmp_path, enabled=True)
    runs = fleet("run", 9)
    cluster.send(interleaved([looping(run) for run in runs]), frame=4)
    worker = cluster.worker()
    cluster.wait_judged(runs)
    cluster.stop(worker)
    outputs = []
    for name, more in {
        "one": [],
        "two": ["--processes", 2],
        "kept": ["--state", tmp_path / "state"],
        "again": ["--state", tmp_path / "state"],
    }.items():
        out = tmp_path / f"{name}.ndjson"
        assert on_kafka("replay", "--out", out, *more).code == 0
        outputs.append(out.read_bytes())
    assert len(set(outputs)) == 1
    other = on_kafka("replay", "--state", tmp_path / "state", "--set", "warningThreshold=3")
    assert other.code == 2
    assert "another replay" in other.err
