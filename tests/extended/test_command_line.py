"""``loopstream scenarios`` and ``loopstream detectors``, as they are typed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from loopstream.cli.app import app
from tests.extended.variants import HEALTHY, LOOPS


def run(*args: str) -> Result:
    return CliRunner().invoke(app, list(args))


@pytest.fixture
def file(tmp_path: Path) -> str:
    made = [
        {"id": "stuck", "want": "block", "events": LOOPS["noise-in-json-text"][1]},
        {"id": "fine", "want": "none", "events": HEALTHY["clicks"]},
        {"id": "never", "want": "abort", "events": HEALTHY["clicks"]},
    ]
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(map(json.dumps, made)))
    return str(path)


def test_the_table_and_the_closing_line(file: str) -> None:
    shown = run("scenarios", "--profile", "extended", file)
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    assert lines[-1] == "scenarios=3 as_wanted=2 missed=1 false_stops=0 false_warnings=0 late=0"
    assert any("stuck" in line and "generic_repeat" in line for line in lines)


@pytest.mark.parametrize(("at_least", "code"), [("0.6", 0), ("2", 0), ("0.7", 1), ("3", 1)])
def test_at_least(file: str, at_least: str, code: int) -> None:
    assert run("scenarios", "--profile", "extended", "--at-least", at_least, file).exit_code == code


def test_as_json(file: str) -> None:
    shown = run("scenarios", "--profile", "extended", "--output", "json", file)
    rows: list[dict[str, Any]] = json.loads(shown.stdout)
    assert [row["grade"] for row in rows] == ["as_wanted", "as_wanted", "missed"]
    assert rows[0]["got"] == "block"
    assert [heard["level"] for heard in rows[0]["heard"]] == ["warn", "block"]


def test_detectors_show_values_and_where_they_are_from(tmp_path: Path) -> None:
    path = tmp_path / "agents.json"
    path.write_text(json.dumps({
        "tools": {"loopDetection": {"enabled": True, "extended": {
            "detectors": {"cycle": {"warn": 6}},
            "tools": {"ba*": {"detectors": {"cycle": {"maxPeriod": 8}}}}}}},
        "agents": {"list": [{"id": "a", "tools": {"loopDetection": {"extended": {
            "patience": 2, "detectors": {"cycle": {"block": 9}}}}}}]},
    }))  # fmt: skip
    words = ("--profile", "extended", "--agent", "a", "--tool", "bash", "--output", "json")
    shown = run("detectors", str(path), *words)
    rows = {row["setting"]: row for row in json.loads(shown.stdout) if row["detector"] == "cycle"}
    values = {name.rpartition(".")[2]: (row["value"], row["origin"]) for name, row in rows.items()}
    assert values["warn"] == (12, "everyone, times patience 2")
    assert values["block"] == (18, "agent a, times patience 2")
    assert values["maxPeriod"] == (8, "everyone, tool ba*")
    assert values["waitFactor"] == (3, "default")


def test_every_detector_says_what_it_reacts_to() -> None:
    shown = run("detectors", "--profile", "extended", "--describe", "--output", "json")
    rows = json.loads(shown.stdout)
    assert len(rows) >= 16
    assert all("React" in row["reacts"] or "As `FailureClass`" in row["reacts"] for row in rows)
