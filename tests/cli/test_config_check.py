from __future__ import annotations

from pathlib import Path

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
