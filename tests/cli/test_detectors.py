"""``loopstream detectors``: values, modes, and where they are from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from loopstream.detect.profiles import PROFILES
from tests.cli.conftest import Cli

FILE = """
{ tools: {loopDetection: {
    enabled: true, mode: "warn", warningThreshold: 7, criticalThreshold: 7,
    detectors: {knownPollNoProgress: false}, modes: {ping_pong: "shadow"}}},
  agents: {list: [
    {id: "a", tools: {loopDetection: {
      mode: "enforce", modes: {generic_repeat: "off"}, unknownToolThreshold: 4}}},
  ]},
}
"""
GUARD = "compaction_loop_persisted"


def table(cli: Cli, *words: str) -> dict[tuple[str, str], tuple[Any, str]]:
    said = cli("detectors", *words, "-o", "json")
    assert said.code == 0, said.err
    return {(row["detector"], row["setting"]): (row["value"], row["origin"]) for row in said.json}


def test_of_an_agent(cli: Cli) -> None:
    Path("agents.json").write_text(FILE)
    rows = table(cli, "agents.json", "--agent", "a")
    assert {name: said for (name, setting), said in rows.items() if setting == "mode"} == {
        "unknown_tool_repeat": ("enforce", "agent a"),
        "global_circuit_breaker": ("enforce", "agent a"),
        "known_poll_no_progress": ("off", "detectors.knownPollNoProgress is false (everyone)"),
        "ping_pong": ("shadow", "everyone"),
        "generic_repeat": ("off", "agent a"),
        GUARD: ("enforce", "agent a"),
    }
    assert rows["unknown_tool_repeat", "unknownToolThreshold"] == (4, "agent a")
    assert rows["ping_pong", "warningThreshold"] == (7, "everyone")
    assert rows["ping_pong", "criticalThreshold"] == (8, "everyone, 7 is clamped")
    assert rows[GUARD, "postCompactionGuard.windowSize"] == (3, "default")


def test_of_everyone_and_of_nobody(cli: Cli) -> None:
    Path("agents.json").write_text(FILE)
    assert table(cli, "agents.json")["generic_repeat", "mode"] == ("warn", "everyone")
    rows = table(cli)
    assert rows["generic_repeat", "mode"] == ("off", "enabled is not true (default)")
    assert rows[GUARD, "mode"] == ("enforce", "default")


def test_a_deployment_in_shadow_acts_on_nothing(cli: Cli) -> None:
    Path("agents.json").write_text(FILE)
    Path("loopstream.toml").write_text('[deployment]\nmode = "shadow"\n')
    rows = table(cli, "agents.json", "--agent", "a")
    assert rows["unknown_tool_repeat", "mode"] == ("shadow", "deployment.mode")
    assert rows["generic_repeat", "mode"] == ("off", "agent a")


def test_fixed_values_are_said_to_be_fixed(cli: Cli) -> None:
    Path("agents.json").write_text(FILE)
    rows = table(cli, "agents.json", "--profile", "reference-2026-9")
    assert rows["generic_repeat", "warningThreshold"] == (10, "fixed by the profile")
    assert rows["argument_churn", "mode"] == ("warn", "everyone")
    assert rows["known_poll_no_progress", "mode"] == ("warn", "everyone")


@pytest.mark.parametrize(
    ("block", "mode", "origin"),
    [
        ({"mode": "warn"}, "warn", "everyone"),
        ({"modes": {"cycle": "off"}, "extended": {"mode": "shadow"}}, "off", "everyone"),
        ({"extended": {"tools": {"ba*": {"mode": "off"}}}}, "off", "everyone, tool ba*"),
        ({"enabled": False}, "off", "enabled is not true (everyone)"),
    ],
)
def test_modes_of_profile_extended(cli: Cli, block: dict[str, Any], mode: str, origin: str) -> None:
    Path("agents.json").write_text(json.dumps({"enabled": True, **block}))
    rows = table(cli, "agents.json", "--profile", "extended", "--tool", "bash")
    assert rows["cycle", "mode"] == (mode, origin)
    assert (GUARD, "mode") in rows


@pytest.mark.parametrize("profile", ["documented", "reference-2026-9"])
def test_every_detector_says_what_it_reacts_to(cli: Cli, profile: str) -> None:
    rows = cli("detectors", "--describe", "--profile", profile, "-o", "json").json
    assert [row["detector"] for row in rows] == list(
        dict.fromkeys(detector.name.value for detector in PROFILES[profile].detectors)
    )
    assert all(row["reacts"].startswith("Reacts to") for row in rows)


def test_check_tells_modes_and_names_bad_ones(cli: Cli) -> None:
    Path("agents.json").write_text(FILE)
    said = cli("config", "check", "agents.json")
    everyone, _, own, *_ = said.out.splitlines()
    assert everyone.endswith(
        "knownPollNoProgress off, guard 3, generic_repeat in mode warn, global_circuit_breaker in "
        "mode warn, ping_pong in mode shadow, unknown_tool_repeat in mode warn, "
        f"{GUARD} in mode warn"
    )
    assert "genericRepeat off" in own
    assert own.endswith("ping_pong in mode shadow")
    for block, told in (('{mode: "on"}', "mode is none of"), ('{modes: {x: "off"}}', "modes.x")):
        Path("agents.json").write_text(block)
        said = cli("config", "check", "agents.json")
        assert (said.code, said.out) == (3, "")
        assert told in said.err


def test_check_tells_of_a_mode_without_effect(cli: Cli) -> None:
    block = {"enabled": True, "detectors": {"pingPong": False}, "modes": {"ping_pong": "warn"}}
    Path("agents.json").write_text(json.dumps(block))
    (everyone,) = cli("config", "check", "agents.json", "-o", "json").json
    assert [note["text"] for note in everyone["notes"]] == [
        "detectors.pingPong is false: modes.ping_pong has no effect"
    ]
