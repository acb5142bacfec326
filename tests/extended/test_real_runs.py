"""Recorded real runs are left alone, and loops spliced into them are blocked."""

from __future__ import annotations

import gzip
import json

import pytest

from benchmarks.detecting.splices import PERIODS, splices
from loopstream.scenarios import Heard, Player, rising
from tests.conftest import SHARED

FILE = SHARED / "real" / "runs.jsonl.gz"
RUNS = list(map(json.loads, gzip.decompress(FILE.read_bytes()).splitlines()))


def test_nothing_is_said_about_real_runs() -> None:
    said: list[Heard] = []
    for run in RUNS:
        player = Player("extended")
        for event in run["events"]:
            player.play(event)
        said += rising(player.verdicts)
    assert not said


@pytest.mark.slow
@pytest.mark.parametrize("offset", range(4))
def test_spliced_loops_are_blocked_within_twelve_laps(offset: int) -> None:
    missed, seen = [], set()
    for spliced in splices(RUNS[offset::16]):
        player = Player("extended")
        for event in spliced.events:
            player.play(event)
        seen.add(spliced.period)
        if not any(heard.level in {"block", "abort"} for heard in rising(player.verdicts)):
            missed.append((spliced.name, spliced.period, spliced.volatile))
    assert not missed
    assert seen == set(PERIODS)
