"""The shared scenarios, and the checker itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from loopstream.errors import DataError
from loopstream.scenarios import Outcome, check, check_files, expand
from tests.conftest import SHARED

FILE = SHARED / "scenarios" / "scenarios.jsonl"
SCENARIOS = [json.loads(line) for line in FILE.read_text().splitlines()] if FILE.exists() else []
PER_RUN = [scenario for scenario in SCENARIOS if scenario["id"][0] != "F"]


@pytest.mark.parametrize("scenario", PER_RUN, ids=lambda scenario: scenario["id"])
def test_shared_per_run_scenarios_come_out_as_wanted(scenario: dict[str, Any]) -> None:
    assert check(scenario, "extended").grade == "as_wanted"


def test_nothing_that_must_not_fire_fires() -> None:
    healthy = [check(s, "extended") for s in SCENARIOS if s["want"] == "none"]
    assert {outcome.got for outcome in healthy} <= {"none"}


def _repeated(want: str, times: int, **more: Any) -> dict[str, Any]:
    args = {"path": "a.py"}
    steps = [
        {"op": "call", "run": "r", "tool": "read", "args": args},
        {"op": "outcome", "run": "r", "tool": "read", "args": args, "result": "text"},
    ]
    return {"id": "x", "events": [{"repeat": times, "steps": steps}], "want": want, **more}


@pytest.mark.parametrize(
    ("scenario", "grade"),
    [
        (_repeated("block", 20), "as_wanted"),
        (_repeated("block", 20, by_call=5), "late"),
        (_repeated("abort", 20), "missed"),
        (_repeated("none", 20), "false_stop"),
        (_repeated("none", 8), "false_warning"),
        (_repeated("none", 3), "as_wanted"),
        (_repeated("warn", 20), "as_wanted"),
        (_repeated("warn", 20, max="warn"), "false_stop"),
    ],
)
def test_grades(scenario: dict[str, Any], grade: str) -> None:
    assert check(scenario, "extended").grade == grade


def test_places_are_filled_in() -> None:
    step = {"op": "call", "run": "r", "tool": "t", "args": {"{i}": "{i*10+1}", "v": "a{i:w}{i-1}"}}
    block = {"repeat": 2, "steps": [step], "vars": {"w": ["x"]}}
    assert [event["args"] for event in expand([block])] == [
        {"1": 11, "v": "ax0"},
        {"2": 21, "v": "ax1"},
    ]


def test_unrolling_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loopstream.scenarios.MAX_EVENTS", 10_000)
    block: dict[str, Any] = {"op": "call"}
    for _ in range(4):
        block = {"repeat": 1000, "steps": [block]}
    with pytest.raises(ValueError, match="more than"):
        list(expand([block]))


def test_a_line_that_is_no_scenario_is_named(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    file.write_text(json.dumps(_repeated("none", 1)) + '\n{"id": "y"}\n')
    with pytest.raises(DataError) as error:
        check_files([file], "extended")
    assert error.value.where == f"{file}:2"


def test_the_closing_line_counts_every_grade(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    lines = [_repeated("block", 20), _repeated("none", 20), _repeated("abort", 20)]
    file.write_text("\n".join(map(json.dumps, lines)))
    report = check_files([file], "extended")
    assert report.closing_line() == (
        "scenarios=3 as_wanted=1 missed=1 false_stops=1 false_warnings=0 late=0"
    )
    assert isinstance(report.outcomes[0], Outcome)
