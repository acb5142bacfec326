"""Recorded real runs: work is let alone, and the same work stuck in its last step is stopped."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from loopstream.cli import run as command
from tests.conftest import SHARED
from tests.e2e.house import House
from tests.e2e.oracle import assert_exact

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]

BLOCKS = {"enabled": True}
FILE = SHARED / "real" / "runs.jsonl.gz"
STUCK_TURNS = 40


def recorded() -> list[dict[str, Any]]:
    with gzip.open(FILE) as lines:
        return [json.loads(line) for line in lines]


def publish(house: House, file: Path, *more: str) -> None:
    arguments = [str(file), *more, "--bootstrap", house.bootstrap, "--prefix", house.prefix]
    assert command(["publish", *arguments]) == 0
    house.settle()


def test_no_real_run_is_stopped(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    publish(house, FILE, "--run-prefix", "real-")
    assert "published 127 runs" in capsys.readouterr().err
    assert_exact(house)
    said = [v for v in house.all_verdicts() if v.scope.startswith("real-")]
    assert not [v for v in said if v.action in {"block", "abort"}]
    ended = [s for run, s in house.summaries().items() if run.startswith("real-")]
    assert len(ended) == 127
    assert {summary["status"] for summary in ended} == {"ended"}
    assert sum(summary["calls"] for summary in ended) == 940
    assert house.dead_letters() == []


def test_raw_values_are_judged_as_fingerprints_are(house: House) -> None:
    """What the worker fingerprints by itself comes to what the runners would have sent."""
    looping = stuck_runs()[::20]
    file = written(house, looping)
    publish(house, file, "--run-prefix", "fp-")
    publish(house, file, "--run-prefix", "raw-", "--raw")
    for run in looping:
        said = [
            [(v.action, v.detector, v.count, v.key) for v in house.verdicts(prefix + run["run"])]
            for prefix in ("fp-", "raw-")
        ]
        assert said[0] == said[1] != []


def test_each_real_run_stuck_in_its_last_two_calls_is_blocked(house: House) -> None:
    looping = stuck_runs()
    assert len(looping) == 118
    publish(house, written(house, looping), "--run-prefix", "stuck-")
    blocked = {v.scope for v in house.all_verdicts() if v.action == "block"}
    assert {f"stuck-{run['run']}" for run in looping} - blocked == set()


def stuck_runs() -> list[dict[str, Any]]:
    """The runs that have calls, each with its last two again and again, under ids of their own."""
    return [
        run | {"run": f"{number}-{run['run']}", "events": run["events"] + last * STUCK_TURNS}
        for number, run in enumerate(recorded())
        if (last := last_two(run["events"]))
    ]


def last_two(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The last two calls that something came of, with their outcomes.

    A call such as ``finish`` ends its run: nothing comes of it, and it is never made again.
    """
    whole = [pair for pair in pairwise(events) if [e["op"] for e in pair] == ["call", "outcome"]]
    return [event for pair in whole[-2:] for event in pair]


def written(house: House, runs: list[dict[str, Any]]) -> Path:
    file = house.folder / "stuck.jsonl"
    file.write_text("".join(f"{json.dumps(run)}\n" for run in runs))
    return file
