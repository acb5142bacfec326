"""What ``config check`` says, pushing says too, before anything reaches the config topic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from loopstream.cli import config_push
from tests.cli.conftest import Cli

SURPRISES = {"enabled": True, "warningThreshold": 9, "criticalThreshold": 9, "historySize": 15}
MISTAKES: list[dict[str, Any]] = [
    {"enabled": "yes"},
    {"enabled": 1},
    {"enabled": True, "warnThreshold": 3},
    {"enabled": True, "detectors": {"pingpong": False}},
    {"enabled": True, "detectors": {"pingPong": "no"}},
    {"enabled": True, "historySize": "30"},
    {"enabled": True, "postCompactionGuard": 3},
]


@pytest.fixture
def pushed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    blocks: list[Any] = []

    def push(_: object, read: Any, **__: object) -> list[Any]:
        blocks.extend(named.block for named in read.blocks)
        return []

    monkeypatch.setattr(config_push, "push_blocks", push)
    return blocks


def texts(checked: Any) -> list[str]:
    return [note["text"] for row in checked for note in row["notes"]]


@pytest.mark.parametrize("block", MISTAKES, ids=json.dumps)
def test_what_is_not_heeded_is_refused_unless_forced(
    cli: Cli, pushed: list[Any], block: dict[str, Any]
) -> None:
    Path("agents.json").write_text(json.dumps(block))
    told = texts(cli("config", "check", "agents.json", "-o", "json").json)
    said = cli("config", "push", "agents.json")
    assert said.code == 3
    assert not pushed
    assert told
    assert all(text in said.err for text in told)
    assert "--force" in said.err
    forced = cli("config", "push", "agents.json", "--force")
    assert forced.code == 0, forced.err
    assert pushed == [block]
    assert all(text in forced.err for text in told)


def test_what_may_surprise_is_said_and_pushed(cli: Cli, pushed: list[Any]) -> None:
    Path("agents.json").write_text(json.dumps(SURPRISES))
    told = texts(cli("config", "check", "agents.json", "-o", "json").json)
    said = cli("config", "push", "agents.json")
    assert said.code == 0
    assert pushed == [SURPRISES]
    assert len(told) == 2
    assert all(text in said.err for text in told)


def test_nothing_is_said_of_what_means_what_it_says(cli: Cli, pushed: list[Any]) -> None:
    Path("agents.json").write_text('{"enabled": true, "mode": "shadow"}')
    said = cli("config", "push", "agents.json")
    assert said.err.splitlines() == ["0 of 1 blocks changed in loopstream.config"]
    assert pushed


def test_up_refuses_them_before_it_starts_anything(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, pushed: list[Any]
) -> None:
    monkeypatch.setenv("LOOPSTREAM_BOOTSTRAP", "127.0.0.1:1")
    Path("agents.json").write_text('{"enabled": "yes"}')
    said = cli("up", "--detectors", "agents.json")
    assert said.code == 3
    assert 'enabled "yes" is not true or false: detection stays off' in said.err
    assert not pushed
