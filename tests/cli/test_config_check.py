from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

FILE = """
{ // ours
  tools: {loopDetection: {enabled: true, warningThreshold: 7, criticalThreshold: 7}},
  agents: {list: [
    {id: "small", tools: {loopDetection: {historySize: 20, criticalThreshold: 16,}}},
    {id: "other"},
  ]},
}
"""


def test_says_what_each_agents_settings_come_to(cli: Cli) -> None:
    Path("agents.json").write_text(FILE)
    said = cli("config", "check", "agents.json")
    assert said.code == 0
    assert said.err == ""
    assert said.out.splitlines() == [
        (
            "* (tools.loopDetection): on, warn 7, block 8, breaker 30, unknown tool 10, "
            "history 30, guard 3"
        ),
        "  clamped: criticalThreshold 7 becomes 8: must be above warningThreshold 7",
        (
            "small (agents.list[0].tools.loopDetection): on, warn 7, block 16, breaker 30, "
            "unknown tool 10, history 20, guard 3"
        ),
        (
            "  never fires: globalCircuitBreakerThreshold 30 is above historySize 20: "
            "the global circuit breaker never opens"
        ),
    ]


def test_the_json_form_has_the_values_in_force(cli: Cli) -> None:
    Path("agents.json").write_text(FILE)
    everyone, small = cli("config", "check", "agents.json", "-o", "json").json
    assert everyone["resolved"]["criticalThreshold"] == 8
    assert everyone["notes"][0]["kind"] == "clamped"
    assert small["resolved"]["historySize"] == 20
    assert small["guard"] == {"enabled": True, "windowSize": 3}


def test_beyond_the_bounds_is_exit_code_3(cli: Cli) -> None:
    Path("agents.json").write_text('{"historySize": 10001}')
    said = cli("config", "check", "agents.json")
    assert said.code == 3
    assert said.out == ""
    assert "historySize is above 10000" in said.err


def test_a_broken_file_is_named_with_its_line(cli: Cli) -> None:
    Path("agents.json").write_text("{\n  tools: }\n")
    said = cli("config", "check", "agents.json")
    assert said.code == 3
    assert said.err == "loopstream: agents.json:2: is not JSON (nor JSON5).\n"


def test_what_strangers_wrote_can_not_steer_the_terminal(cli: Cli) -> None:
    Path("agents.json").write_text('{"enabled": "\\u001b[2J\\u202e"}')
    said = cli("config", "check", "agents.json")
    assert "\x1b" not in said.out
    assert "\u202e" not in said.out


def test_strict_fails_on_any_remark_and_on_no_other_file(cli: Cli) -> None:
    Path("agents.json").write_text(FILE)
    said = cli("config", "check", "agents.json", "--strict")
    assert said.code == 3
    assert "2 remarks" in said.err
    assert said.out == cli("config", "check", "agents.json").out
    Path("good.json").write_text('{"enabled": true}')
    assert cli("config", "check", "good.json", "--strict").code == 0


def test_a_misspelt_setting_is_told_the_one_that_may_be_meant(cli: Cli) -> None:
    Path("agents.json").write_text('{"enabled": true, "warnThreshold": 3}')
    said = cli("config", "check", "agents.json")
    assert "warnThreshold is no setting (did you mean warningThreshold?); it is ignored" in said.out


@pytest.mark.parametrize("verb", [("config", "check"), ("detectors",)])
@pytest.mark.parametrize("profile", ["documented", "reference-2026-9", "extended"])
def test_says_what_counts_with_another_profile_alone(
    cli: Cli, verb: tuple[str, ...], profile: str
) -> None:
    own: dict[str, dict[str, object]] = {
        "documented": {"criticalThreshold": 25},
        "extended": {"extended": {"patience": 2}},
    }
    for meant, setting in own.items():
        Path("agents.json").write_text(json.dumps({"enabled": True, **setting}))
        said = cli(*verb, "agents.json", "--profile", profile)
        assert said.code == 0
        (key,) = setting
        text = f"{key} has no effect: the profile is {profile}, and it counts with {meant}"
        assert (text in said.out + said.err) is (profile != meant)


def test_the_deployment_s_profile_is_the_default(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    part = {"detectors": {"cycle": {"warn": 6}}, "tools": {"ba*": {"patience": 2}}}
    Path("agents.json").write_text(json.dumps({"enabled": True, "extended": part}))
    assert "has no effect" in cli("config", "check", "agents.json").out
    monkeypatch.setenv("LOOPSTREAM_DEPLOYMENT__PROFILE", "extended")
    (line,) = cli("config", "check", "agents.json").out.splitlines()
    assert "on, profile extended, history 240, patience 1, mode enforce, guard 3" in line
    assert "cycle (warn 6, block 8, abort 0, maxPeriod 16" in line
    assert line.endswith("tool ba* by itself")
    (row,) = cli("config", "check", "agents.json", "-o", "json").json
    told = row["resolved"]["extended"]
    assert told["detectors"]["cycle"]["warn"] == 6
    assert told["tools"]["ba*"]["patience"] == 2
    assert "warningThreshold" not in row["resolved"]
