from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopstream.detect.limits import Limits
from loopstream.policy import settings
from loopstream.policy.advice import NoteKind, explain
from loopstream.policy.settings import merge, refuse, resolve, resolve_reference, resolved_view
from tests.conftest import SHARED

VECTORS = SHARED / "vectors" / "config.jsonl"
CASES = [json.loads(line) for line in VECTORS.read_text().splitlines()]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
names = st.sampled_from([*settings.KEYS, *settings.SWITCHES, settings.WINDOW]) | st.text(max_size=5)
leaves = json_values | st.integers(1, 40)
blocks = st.dictionaries(names, leaves | st.dictionaries(names, leaves, max_size=4), max_size=8)


def test_all_shared_cases_are_there() -> None:
    assert len(CASES) == 153


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_merges_and_resolves_as_the_reference(case: dict[str, Any]) -> None:
    merged = merge(case.get("globalConfig"), case.get("agentConfig"))
    assert merged == case["merged"]
    expected = {"resolved": case["resolved"], "guard": case["guard"]}
    assert resolved_view(resolve(merged)) == expected


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_finds_the_issues_of_the_references_file_validation(case: dict[str, Any]) -> None:
    expected = case["strictSchema"]
    for side in ("global", "agent"):
        issues = settings.strict_issues(case.get(f"{side}Config"))
        assert issues == expected.get(f"{side}Issues", [])
        assert (not issues) == expected[side]


def test_only_a_literal_false_keeps_calls_out_of_the_history() -> None:
    values: tuple[object, ...] = (None, True, 0, "", "false", [], {})
    for value in values:
        assert resolve({"enabled": value}).entered
    assert resolve({}).entered
    assert not resolve({"enabled": False}).entered


def test_the_reference_profile_reads_enabled_alone() -> None:
    block = {"enabled": True, "warningThreshold": 2, "detectors": {"pingPong": False}}
    assert resolve_reference(block) == Limits(enabled=True)
    assert resolve_reference({}) == Limits(enabled=False, entered=False, guard=True)
    assert resolve_reference({"enabled": False}) == Limits(False, entered=False, guard=False)


@given(blocks, blocks)
def test_any_block_resolves_to_ordered_limits(one: dict[str, Any], other: dict[str, Any]) -> None:
    limits = resolve(merge(one, other))
    assert 0 < limits.warning < limits.critical < limits.breaker
    assert min(limits.history_size, limits.unknown_tool, limits.guard_window) > 0
    assert len(limits.digest) == 16


@given(blocks)
def test_equal_limits_have_equal_digests(block: dict[str, Any]) -> None:
    limits = resolve(block)
    again = resolve({**resolved_view(limits)["resolved"], settings.GUARD: {"windowSize": 1}})
    assert (limits.digest == again.digest) == (resolved_view(limits) == resolved_view(again))


@given(blocks)
def test_an_empty_agent_block_changes_nothing(block: dict[str, Any]) -> None:
    assert resolve(merge(block, {})) == resolve(block)
    assert resolve(merge(None, block)) == resolve(merge({}, block)) == resolve(block)


@given(json_values | blocks)
def test_any_json_value_is_taken_or_refused_with_a_reason(value: object) -> None:
    reason = refuse(value)
    if reason is None:
        assert isinstance(value, dict)
        limits = resolve(value)
        assert limits.history_size <= settings.MAX_HISTORY
        assert limits.guard_window <= settings.MAX_WINDOW
    else:
        assert reason
    settings.strict_issues(value)


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        ([], "a settings block is a JSON object"),
        (None, "a settings block is a JSON object"),
        ({"historySize": 10_001}, "historySize is above 10000: a run's record would not fit"),
        ({"historySize": 1e9}, "historySize is above 10000: a run's record would not fit"),
        (
            {"postCompactionGuard": {"windowSize": 1001}},
            "postCompactionGuard.windowSize is above 1000: a run's record would not fit",
        ),
        ({"historySize": 10_000, "postCompactionGuard": {"windowSize": 1000}}, None),
        ({"historySize": "100000"}, None),
    ],
)
def test_refuses_what_a_run_s_row_can_not_hold(block: object, reason: str | None) -> None:
    assert refuse(block) == reason


def notes(block: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(note.kind.value, note.text) for note in explain({"enabled": True, **block})]


def test_a_clean_block_has_no_notes() -> None:
    assert notes({"warningThreshold": 8, "criticalThreshold": 16}) == []


@pytest.mark.parametrize(
    ("block", "kind", "text"),
    [
        (
            {"warningThreshold": 7, "criticalThreshold": 7},
            "clamped",
            "criticalThreshold 7 becomes 8: must be above warningThreshold 7",
        ),
        (
            {"warningThreshold": 25, "historySize": 50},
            "clamped",
            "criticalThreshold 20 (the default) becomes 26: must be above warningThreshold 25",
        ),
        (
            {"criticalThreshold": 30, "historySize": 50},
            "clamped",
            (
                "globalCircuitBreakerThreshold 30 (the default) becomes 31: "
                "must be above criticalThreshold 30"
            ),
        ),
        (
            {"historySize": 29},
            "never_fires",
            (
                "globalCircuitBreakerThreshold 30 is above historySize 29: "
                "the global circuit breaker never opens"
            ),
        ),
        (
            {"unknownToolThreshold": 31},
            "never_fires",
            "unknownToolThreshold 31 is above historySize 30: no unknown tool is ever blocked",
        ),
        (
            {"warningThreshold": "8"},
            "ignored",
            'warningThreshold "8" is no whole number above zero: 10 applies',
        ),
        (
            {"detectors": {"pingPong": "off"}},
            "ignored",
            'detectors.pingPong "off" is not true or false: the detector stays on',
        ),
        (
            {"postCompactionGuard": {"windowSize": 0}},
            "ignored",
            "postCompactionGuard.windowSize 0 is no whole number above zero: 3 applies",
        ),
        ({"detectors": []}, "ignored", "detectors (a list) is no object: its defaults apply"),
        (
            {"warning_threshold": 3},
            "unknown_key",
            "warning_threshold is no setting (did you mean warningThreshold?); it is ignored",
        ),
        (
            {"detectors": {"cycle": True}},
            "unknown_key",
            "detectors.cycle is no setting; it is ignored",
        ),
    ],
)
def test_says_what_a_setting_really_does(block: dict[str, Any], kind: str, text: str) -> None:
    found = notes(block)
    assert (kind, text) in found
    if kind not in ("clamped", "never_fires"):
        assert len(found) == 1


def test_says_that_detection_is_off() -> None:
    (guarded,) = explain({})
    (off,) = explain({"enabled": False})
    assert guarded.kind is off.kind is NoteKind.OFF
    assert "guard alone is on" in guarded.text
    assert "so is postCompactionGuard" in off.text


@given(blocks)
def test_every_ignored_or_clamped_value_has_a_note(block: dict[str, Any]) -> None:
    view = resolved_view(resolve(block))["resolved"]
    noted = {note.path for note in explain(block)}
    for key in settings.NUMBERS:
        if key in block and block[key] != view[key]:
            assert key in noted
