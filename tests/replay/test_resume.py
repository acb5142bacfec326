"""Interrupted, taken up again, over a log that retention has cut: the same, or a plain answer."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient

from loopstream.errors import UsageError
from loopstream.policy.deployment import Deployment
from loopstream.replay.files import file_source
from loopstream.replay.moments import Moment, parse_moment
from loopstream.replay.run import Job, replay
from tests.cli.conftest import Cli
from tests.replay.files import kcat, pinned
from tests.replay.traffic import interleaved, looping

pytestmark = pytest.mark.slow


@pytest.fixture
def log(tmp_path: Path) -> Path:
    runs = [looping(f"run-{n}") for n in range(24)]
    return kcat(tmp_path / "k.jsonl", interleaved(runs), partitions=3, pin=pinned())


class _StoppedError(Exception):
    pass


def lines(job: Job, folder: Path, stop_at: int | None = None) -> bytes:
    heard = 0

    def report(_: object) -> None:
        nonlocal heard
        heard += 1
        if heard == stop_at:
            raise _StoppedError

    return b"".join(replay(job, folder, report).lines())


@pytest.mark.parametrize("stop_at", [1, 5, 12])
def test_a_replay_that_was_interrupted_comes_to_the_same(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop_at: int
) -> None:
    monkeypatch.setattr("loopstream.replay.run._CHECKPOINT_RECORDS", 50)
    monkeypatch.setattr("loopstream.replay.files._BATCH", 20)
    source = file_source(log)
    plain = Job(source=source, deployment=Deployment(prefix="p"))
    kept = Job(source=source, deployment=Deployment(prefix="p"), state=tmp_path / "state")
    (tmp_path / "once").mkdir()
    whole = lines(plain, tmp_path / "once")
    with pytest.raises(_StoppedError):
        lines(kept, tmp_path, stop_at)
    with pytest.raises(_StoppedError):
        lines(kept, tmp_path, 3)
    assert lines(kept, tmp_path) == whole


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_replay_that_was_killed_comes_to_the_same(tmp_path: Path, cli: Cli) -> None:
    runs = [looping(f"run-{n}", turns=40) for n in range(150)]
    log = kcat(tmp_path / "big.jsonl", interleaved(runs), partitions=2, pin=pinned())
    state = tmp_path / "state"
    arguments = ["replay", str(log), "--state", str(state), "--out"]
    command = [sys.executable, "-m", "loopstream", *arguments, str(tmp_path / "never.ndjson")]
    with subprocess.Popen(command, cwd=tmp_path) as process:
        deadline = time.monotonic() + 60
        while not list(state.glob("*.ndjson")) and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.5)
        process.kill()
    assert cli(*arguments, tmp_path / "resumed.ndjson").code == 0
    assert cli("replay", log, "--out", tmp_path / "whole.ndjson").code == 0
    resumed = (tmp_path / "resumed.ndjson").read_bytes()
    assert resumed == (tmp_path / "whole.ndjson").read_bytes()
    assert resumed.count(b'"action"') > 150


def test_rows_leave_memory_and_come_back(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = file_source(log)
    job = Job(source=source, deployment=Deployment(prefix="p"))
    for name in ("roomy", "tight"):
        (tmp_path / name).mkdir()
    roomy = lines(job, tmp_path / "roomy")
    monkeypatch.setattr("loopstream.replay.run.LIVE_RUNS", 2)
    assert lines(job, tmp_path / "tight") == roomy


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("@17", Moment(offset=17)),
        ("90m", Moment(millis=10_000_000 - 5_400_000)),
        ("-2h", Moment(millis=10_000_000 - 7_200_000)),
        ("1970-01-01T00:00:05", Moment(millis=5000)),
        ("1970-01-01T01:00:05+01:00", Moment(millis=5000)),
        ("1764500000000", Moment(millis=1_764_500_000_000)),
    ],
)
def test_moments(text: str, moment: Moment) -> None:
    assert parse_moment(text, 10_000_000) == moment


@pytest.mark.parametrize("text", ["", "yesterday", "@", "@-1", "12", "2026-13-01"])
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(UsageError, match="neither a time nor an offset"):
        parse_moment(text, 0)


@pytest.mark.kafka
@pytest.mark.timeout(240)
def test_what_retention_has_taken_is_said_and_left_out_of_the_audit(
    cluster: Any, on_kafka: Cli, tmp_path: Path
) -> None:
    on = tmp_path / "on.json"
    on.write_text('{"enabled": true}')
    assert on_kafka("config", "push", on).code == 0
    old = [looping(f"old-{n}", turns=40) for n in range(6)]
    cluster.send([event for run in old for event in run[:50]])
    new = [looping(f"new-{n}") for n in range(6)]
    cluster.send(interleaved([*(run[50:] for run in old), *new]))
    worker = cluster.worker()
    cluster.wait_judged(run[0]["run"] for run in (*old, *new))
    cluster.stop(worker)
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    cut = {TopicPartition(f"{cluster.prefix}.events", number): 30 for number in range(3)}
    admin.delete_records(cut)
    admin.close()
    out = tmp_path / "now.ndjson"
    said = on_kafka("replay", "--out", out)
    assert said.code == 0, said.err
    assert "runs is gone: they are partial" in said.err
    found = on_kafka("diff", out, "recorded", "--fail-on", "any", "-o", "json")
    assert found.code == 0, found.out
    assert found.json["partial_runs"] > 0
    assert found.json["counts"]["same"] > 0
    rows = [json.loads(line) for line in out.read_bytes().splitlines()]
    partial = {row["scope"] for row in rows if row["type"] == "partial"}
    assert partial <= {f"old-{n}" for n in range(6)}
    told = on_kafka("explain", min(partial))
    assert "partial: the run had begun" in told.out


@pytest.mark.kafka
def test_no_broker_and_no_topic_are_told(cli: Cli, bootstrap: str) -> None:
    away = cli("replay", "--bootstrap", "127.0.0.1:1")
    assert away.code == 4
    for verb in (["replay"], ["explain", "r"], ["tail"], ["sql", "select 1"], ["export", "x"]):
        said = cli(*verb, "--bootstrap", bootstrap, "--prefix", "nobody")
        assert said.code == 4
        assert "does not exist" in said.err


@pytest.mark.kafka
def test_verdicts_go_to_another_topic_but_never_to_the_runners(
    on_kafka: Cli, cluster: Any, log: Path, bootstrap: str
) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    name = f"{cluster.prefix}.tried"
    admin.create_topics({name: {"num_partitions": 1, "replication_factor": 1}})
    admin.close()
    said = on_kafka("replay", log, "--to-topic", name)
    assert said.code == 0, said.err
    sent = cluster.verdicts(name)
    assert {v.run for v in sent} == {f"run-{n}" for n in range(24)}
    for topic in ("verdicts", "events", "config"):
        refused = on_kafka("replay", log, "--to-topic", f"{cluster.prefix}.{topic}")
        assert refused.code == 2
        assert "live system" in refused.err
