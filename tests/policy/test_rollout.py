"""Rollout modes of the documented profiles: what a settings block says, and what comes of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopstream.detect.base import DetectorName
from loopstream.detect.extended.registry import detectors
from loopstream.detect.rollout import MODES, Mode
from loopstream.events import Action, Verdict
from loopstream.policy.extended_settings import resolve_extended, resolve_for
from loopstream.policy.settings import (
    judges_of,
    merge,
    refuse,
    resolve,
    resolve_reference,
    resolved_view,
)
from tests.engine.driver import PROFILE, Driver
from tests.engine.naive import Compacted, NaiveStep
from tests.engine.strategies import RUNNING, call_of, outcome_of, steps

LAW = settings(max_examples=60, deadline=None, derandomize=True, database=None)
TINY: dict[str, Any] = {
    "enabled": True,
    "historySize": 9,
    "warningThreshold": 2,
    "criticalThreshold": 4,
    "globalCircuitBreakerThreshold": 6,
    "unknownToolThreshold": 3,
    "postCompactionGuard": {"windowSize": 2},
}
GUARD = DetectorName.GUARD.value
JUDGES = judges_of("documented")
modes_blocks = st.dictionaries(st.sampled_from((*JUDGES, GUARD)), st.sampled_from(MODES))


# -- the settings ----------------------------------------------------------------------------


def test_no_modes_are_no_difference() -> None:
    everything = dict.fromkeys((*JUDGES, GUARD), "enforce")
    plain = resolve({"enabled": True})
    blocks: list[dict[str, Any]] = [{"mode": "enforce"}, {"modes": {}}]
    for block in (*blocks, {"mode": "shadow", "modes": everything}):
        limits = resolve({"enabled": True, **block})
        assert limits == plain
        assert limits.digest == plain.digest
        assert limits.rollout is None
    assert "modes" not in resolved_view(plain)


@pytest.mark.parametrize(
    ("block", "digest"),
    [({"enabled": True}, "28b5e6312eb8bc72"), (TINY, "6ddfcaa091c7b7fb")],
)
def test_digests_from_before_there_were_modes_stay(block: dict[str, Any], digest: str) -> None:
    assert resolve(block).digest == digest


@given(modes_blocks, st.sampled_from(MODES))
def test_modes_are_shown_and_named_by_the_digest(modes: dict[str, Mode], default: Mode) -> None:
    limits = resolve({**TINY, "mode": default, "modes": modes})
    view = resolved_view(limits)
    held = view.get("modes", {})
    for name in (*JUDGES, GUARD):
        mode = modes.get(name, default)
        if mode == "off" and name in {*JUDGES[2:], GUARD}:
            assert name not in held  # the documented switch says so
        else:
            assert held.get(name, "enforce") == mode
    same = resolve(TINY)
    assert (limits.digest == same.digest) == (limits == same) == (view == resolved_view(same))


def test_off_is_the_documented_switch() -> None:
    modes = {"generic_repeat": "off", "ping_pong": "off", "known_poll_no_progress": "off"}
    off = dict.fromkeys(("genericRepeat", "pingPong", "knownPollNoProgress"), False)
    assert resolve({"modes": modes}) == resolve({"detectors": off})
    assert resolve({"detectors": off, "modes": {"ping_pong": "shadow"}}) == resolve(
        {"detectors": off}
    )
    assert not resolve({"modes": {GUARD: "off"}}).guard


def test_an_agents_modes_go_over_everyones_field_by_field() -> None:
    everyone = {"mode": "warn", "modes": {"ping_pong": "shadow", "generic_repeat": "shadow"}}
    own = {"mode": "enforce", "modes": {"generic_repeat": "enforce"}}
    limits = resolve(merge(everyone, own))
    assert resolved_view(limits)["modes"] == {"ping_pong": "shadow"}
    assert merge(everyone, {"modes": {}}) == {
        **everyone,
        "detectors": {},
        "postCompactionGuard": {},
    }


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        ({"mode": "shadwo"}, "mode is none of off, shadow, warn, enforce"),
        ({"mode": None}, "mode is none of off, shadow, warn, enforce"),
        ({"mode": []}, "mode is none of off, shadow, warn, enforce"),
        ({"modes": ["shadow"]}, "modes is no object"),
        ({"modes": None}, "modes is no object"),
        (
            {"modes": {"pingPong": "off"}},
            "modes.pingPong is no detector: see `loopstream detectors`",
        ),
        (
            {"modes": {"ping_pong": True}},
            "modes.ping_pong is none of off, shadow, warn, enforce",
        ),
        ({"mode": "shadow", "modes": {"ping_pong": "off", "cycle": "warn"}}, None),
    ],
)
def test_a_bad_mode_is_refused_by_name(block: dict[str, Any], reason: str | None) -> None:
    assert refuse(block) == reason
    resolve(block)  # a block that came into force under an older version does no harm


def test_every_profile_reads_them() -> None:
    block = {"enabled": True, "mode": "warn", "modes": {"argument_churn": "off", GUARD: "shadow"}}
    reference = resolve_reference(block)
    assert resolved_view(reference)["modes"]["argument_churn"] == "off"
    assert reference.guard_mode == "shadow"
    assert "argument_churn" not in resolved_view(resolve(block))["modes"]
    extended = resolve_extended({**block, "modes": {"cycle": "off", GUARD: "shadow"}})
    assert extended.guard_mode == "shadow"
    assert extended.extended is not None
    assert extended.extended.mode == "warn"
    assert [armed.detector.name for about in extended.extended.rules("") for armed in about]
    assert "cycle" not in {
        armed.detector.name for about in extended.extended.rules("") for armed in about
    }


def test_the_extended_part_goes_before_the_blocks_modes() -> None:
    part = {"mode": "shadow", "detectors": {"cycle": {"mode": "enforce"}}}
    block = {"mode": "warn", "modes": {"cycle": "off", "budget": "off"}, "extended": part}
    limits = resolve_extended(block).extended
    assert limits is not None
    modes = {d.name: limits.arm(d, "").mode for d in detectors()}
    assert (modes["cycle"], modes["budget"], modes["send_storm"]) == ("enforce", "off", "shadow")


# -- what is published -----------------------------------------------------------------------


def said(verdicts: list[Verdict]) -> list[tuple[str, str, int]]:
    return [(v.action.value, v.mode, v.count) for v in verdicts]


def looping(block: dict[str, Any], times: int = 5, spec: int = 0) -> list[Verdict]:
    """One call with one result again and again, whatever is said to it."""
    driver, verdicts = Driver(resolve({**TINY, **block}), announce="first"), []
    for _ in range(times):
        for step in (call_of(spec, None, "r1"), outcome_of(spec, "ok", None, "r1", latest=False)):
            verdicts += driver.play(step).verdicts
    return verdicts


def test_enforced() -> None:
    assert said(looping({})) == [
        ("warn", "enforce", 2),
        ("block", "enforce", 4),
        ("block", "enforce", 4),
    ]


def test_in_shadow_every_call_that_would_be_refused_is_told_and_nothing_stands() -> None:
    assert said(looping({"mode": "shadow"}, times=6)) == [
        ("warn", "shadow", 2),
        ("block", "shadow", 4),
        ("block", "shadow", 5),
    ]


def test_a_warning_stands_in_for_a_block_and_says_so() -> None:
    verdicts = looping({"modes": {"generic_repeat": "warn"}})
    assert said(verdicts) == [("warn", "enforce", 2), ("warn", "enforce", 4)]
    assert [v.instead_of for v in verdicts] == [None, Action.BLOCK]
    assert {v.level.value for v in verdicts} == {"warning"}


def test_off_leaves_it_to_the_next() -> None:
    assert said(looping({"modes": {"generic_repeat": "off"}}, times=7)) == [
        ("block", "enforce", 6),
        ("block", "enforce", 6),
    ]


def test_what_only_warns_hides_no_refusal_behind_it() -> None:
    """The circuit breaker comes first in order."""
    verdicts = looping({"modes": {"global_circuit_breaker": "warn"}}, times=7)
    assert said(verdicts)[-1] == ("block", "enforce", 6)
    assert verdicts[-1].detector == "generic_repeat"


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("enforce", [("abort", "enforce", None)]),
        ("warn", [("warn", "enforce", Action.ABORT)]),
        ("shadow", [("abort", "shadow", None)]),
        ("off", []),
    ],
)
@pytest.mark.parametrize("latest", [False, True])
def test_the_guards_mode(mode: Mode, expected: list[object], latest: bool) -> None:
    profile = PROFILE[latest]
    block = {"enabled": False, "modes": {GUARD: mode}, "postCompactionGuard": {"windowSize": 3}}
    driver, verdicts = Driver(resolve_for(profile, block | {"enabled": None}), latest=latest), []
    played: list[NaiveStep] = [Compacted("r1")]
    played += [outcome_of(0, "ok", None, "r1", latest=latest) for _ in range(3)]
    for step in played:
        verdicts += driver.play(step).verdicts
    assert [(v.action.value, v.mode, v.instead_of) for v in verdicts] == expected
    assert (driver.state("r1").aborted is not None) == (mode == "enforce")


# -- laws ------------------------------------------------------------------------------------


def heard(block: dict[str, Any], played: list[NaiveStep], how: list[Any]) -> list[object]:
    """All that is acted on, and what stands at the end."""
    driver, acted = Driver(resolve(block), announce="first"), []
    for step, disposition in zip(played, how, strict=True):
        fields = {"seq", "settings", "id"}
        acted += [
            verdict.model_dump(exclude=fields)
            for verdict in driver.play(step, disposition).verdicts
            if verdict.mode == "enforce"
        ]
    state = driver.state("r1")
    return [acted, state.standing, state.aborted, state.last_verdict]


@pytest.mark.slow
@LAW
@given(st.data(), steps(runs=("r1",), max_parts=6), modes_blocks)
def test_what_is_in_shadow_changes_nothing_that_is_acted_on(
    data: st.DataObject, played: list[NaiveStep], modes: dict[str, Mode]
) -> None:
    """Shadow is off, with something to look at."""
    how = [data.draw(st.sampled_from(RUNNING)) for _ in played]
    off = {name: "off" if mode == "shadow" else mode for name, mode in modes.items()}
    shadowed = heard({**TINY, "modes": modes}, played, how)
    assert shadowed == heard({**TINY, "modes": off}, played, how)


@pytest.mark.slow
@LAW
@given(st.data(), steps(runs=("r1",), max_parts=6))
def test_what_only_warns_refuses_and_ends_nothing(
    data: st.DataObject, played: list[NaiveStep]
) -> None:
    driver = Driver(resolve({**TINY, "mode": "warn"}), announce="first")
    for step in played:
        verdicts = driver.play(step, data.draw(st.sampled_from(RUNNING))).verdicts
        assert {v.action for v in verdicts} <= {Action.WARN, Action.ANSWER}
        assert {v.level.value for v in verdicts} <= {"none", "warning"}
        assert not driver.state("r1").standing
        assert driver.state("r1").aborted is None


# Of the others a mere warning hides what comes behind, as documented.
NEVER_HIDES = ("unknown_tool_repeat", "global_circuit_breaker", "generic_repeat")


@pytest.mark.slow
@LAW
@given(st.data(), steps(runs=("r1",), max_parts=6), st.sampled_from(NEVER_HIDES))
def test_a_detector_that_only_warns_takes_no_refusal_from_the_others(
    data: st.DataObject, played: list[NaiveStep], name: str
) -> None:
    without = Driver(resolve({**TINY, "modes": {name: "off"}}))
    with_it = Driver(resolve({**TINY, "modes": {name: "warn"}}))
    for step in played:
        disposition = data.draw(st.sampled_from(RUNNING))
        without.play(step, disposition)
        with_it.play(step, disposition)
        assert without.state("r1").standing == with_it.state("r1").standing
