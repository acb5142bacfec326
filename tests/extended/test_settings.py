"""Overrides: per detector, per tool, per agent; refused where anything is unknown."""

from __future__ import annotations

from typing import Any

import pytest

from loopstream.detect.extended.cycle import Cycle
from loopstream.detect.extended.generic_repeat import GenericRepeat
from loopstream.detect.extended.limits import Armed, ExtendedLimits
from loopstream.partition.settings import SettingsInForce
from loopstream.policy.extended_part import issues
from loopstream.policy.extended_settings import resolve_extended
from loopstream.policy.settings import merge, refuse
from loopstream.scenarios import Player, rising


def limits(part: dict[str, Any]) -> ExtendedLimits:
    assert refuse({"extended": part}) is None
    extended = resolve_extended({"extended": part}).extended
    assert extended is not None
    return extended


def arm(part: dict[str, Any], tool: str = "") -> Armed:
    return limits(part).arm(GenericRepeat(), tool)


@pytest.mark.parametrize(
    ("part", "path"),
    [
        ([], "extended"),
        ({"historySise": 3}, "extended.historySise"),
        ({"historySize": 5}, "extended.historySize"),
        ({"historySize": 10_001}, "extended.historySize"),
        ({"mode": "loud"}, "extended.mode"),
        ({"patience": 0}, "extended.patience"),
        ({"patience": True}, "extended.patience"),
        ({"detectors": {"cycel": {}}}, "extended.detectors.cycel"),
        ({"detectors": {"cycle": {"lap": 3}}}, "extended.detectors.cycle.lap"),
        ({"detectors": {"cycle": {"warn": 2.5}}}, "extended.detectors.cycle.warn"),
        ({"detectors": {"cycle": {"warn": -1}}}, "extended.detectors.cycle.warn"),
        ({"detectors": {"cycle": {"warn": 8, "block": 8}}}, "extended.detectors.cycle.block"),
        ({"tools": {"bash": {"pol": True}}}, "extended.tools.bash.pol"),
        ({"tools": {"bash": {"poll": 1}}}, "extended.tools.bash.poll"),
        ({"tools": {"bash": 3}}, "extended.tools.bash"),
    ],
)
def test_what_is_wrong_is_named_and_refused(part: Any, path: str) -> None:
    assert next(issues(part)).startswith(path)
    assert (refuse({"extended": part}) or "").startswith(path)
    assert SettingsInForce("extended").put("*", '{"extended": {"x": 1}}') is not None


def test_an_agents_part_is_laid_over_everyones_field_by_field() -> None:
    everyone = {
        "enabled": True,
        "extended": {
            "patience": 2,
            "detectors": {"cycle": {"warn": 6}, "generic_repeat": {"warn": 4, "block": 9}},
        },
    }
    agent = {"extended": {"detectors": {"generic_repeat": {"block": 12, "mode": "shadow"}}}}
    merged = merge(everyone, agent)
    assert merged is not None
    assert merged["extended"] == {
        "patience": 2,
        "detectors": {
            "cycle": {"warn": 6},
            "generic_repeat": {"warn": 4, "block": 12, "mode": "shadow"},
        },
    }
    armed = limits(merged["extended"]).arm(GenericRepeat(), "read")
    assert (armed.params.warn, armed.params.block, armed.mode) == (8, 24, "shadow")


def test_the_most_specific_setting_wins() -> None:
    part = {
        "mode": "warn",
        "detectors": {"generic_repeat": {"warn": 5, "block": 15}},
        "tools": {
            "ba*": {"mode": "off", "detectors": {"generic_repeat": {"block": 30}}},
            "bash": {"mode": "shadow", "patience": 3},
        },
    }
    assert arm(part).mode == "warn"
    assert arm(part, "bat").mode == "off"
    assert arm(part, "bash").mode == "shadow"
    assert (arm(part, "bash").params.warn, arm(part, "bash").params.block) == (15, 90)
    assert limits(part).arm(Cycle(), "bash").params.block == 24


def test_a_lone_threshold_pushes_the_next_one_up() -> None:
    params = arm({"detectors": {"generic_repeat": {"warn": 20}}}).params
    assert (params.warn, params.block) == (20, 21)


def test_the_settings_digest_tells_parts_apart() -> None:
    plain = resolve_extended({"enabled": True})
    other = resolve_extended({"enabled": True, "extended": {"patience": 2}})
    assert plain.digest != other.digest
    assert plain.digest == resolve_extended({"enabled": True, "extended": {}}).digest


def repeat(part: dict[str, Any], times: int = 20, tool: str = "read") -> list[tuple[str, str]]:
    player = Player("extended", {"extended": part})
    for _ in range(times):
        call = {"run": "r", "tool": tool, "args": {"path": "a"}}
        player.play({"op": "call", **call})
        player.play({"op": "outcome", **call, "result": "text"})
    return list(dict.fromkeys((v.action.value, v.mode) for _, v in player.verdicts))


def test_modes() -> None:
    enforced = [("warn", "enforce"), ("block", "enforce")]
    assert repeat({}) == enforced
    assert repeat({"mode": "off"}) == []
    assert repeat({"mode": "warn"}) == [("warn", "enforce")]
    assert repeat({"mode": "shadow"}) == [("warn", "shadow"), ("block", "shadow")]
    assert repeat({"tools": {"read": {"mode": "off"}}}) == []
    assert repeat({"tools": {"write": {"mode": "off"}}}) == enforced


def test_a_shadowed_rule_hides_no_enforcing_one() -> None:
    part = {"detectors": {"generic_repeat": {"mode": "shadow", "warn": 2, "block": 3},
                          "budget": {"window": 600, "calls": 10}}}  # fmt: skip
    said = repeat(part)
    assert ("block", "shadow") in said
    assert ("block", "enforce") in said


def test_a_declared_poll_has_its_own_patience() -> None:
    assert repeat({"tools": {"read": {"poll": True}}}, times=19) == [("warn", "enforce")]


def test_a_budget_blocks_and_frees_itself_when_the_window_has_moved_on() -> None:
    player = Player(
        "extended", {"extended": {"detectors": {"budget": {"window": 60, "calls": 10}}}}
    )
    for number in range(11):
        call = {"run": "r", "tool": "read", "args": {"path": f"f{number}"}}
        player.play({"op": "call", **call})
        player.play({"op": "outcome", **call, "result": f"text {number}"})
    heard = rising(player.verdicts)
    assert [(h.level, h.detector) for h in heard] == [("warn", "budget"), ("block", "budget")]
    player.play({"op": "call", "run": "r", "tool": "other", "args": {}, "dt": 120})
    player.play({"op": "outcome", "run": "r", "tool": "other", "args": {}, "result": "x"})
    assert not player.state("r").standing
