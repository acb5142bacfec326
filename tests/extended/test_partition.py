"""The profile within the fold of a partition: raw events, frames, restarts, operators."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopstream.policy.deployment import Deployment
from tests.extended.strategies import Event, runs
from tests.partition.driver import START, Feed, control_of, frame

DEPLOYMENT = Deployment("test", profile="extended")
ON = {"enabled": True}


def made(number: int, event: Event) -> dict[str, Any]:
    base: dict[str, Any] = {"v": 1, "id": f"e{number}", "run": "r", "time": START + number * 1000}
    if event["op"] == "compaction":
        return base | {"type": "compaction", "tokens_before": 9, "tokens_after": 8, "retried": True}
    base |= {"tool": event["tool"], "args": json.dumps(event["args"])}
    base |= {name: event[name] for name in ("call_id", "batch") if event.get(name)}
    if event["op"] == "call":
        return base | {"type": "tool_call"}
    came = {name: json.dumps(event[name]) for name in ("result", "error") if name in event}
    return base | {"type": "tool_outcome"} | came


def said(feed: Feed) -> list[dict[str, Any]]:
    """Verdicts without their positions, which are evidence."""
    hidden = {"evidence": True}
    return [verdict.model_dump(exclude=hidden) for _, verdict in feed.partition.verdicts]


def repeat(times: int, first: int = 0) -> list[dict[str, Any]]:
    step = {"tool": "read", "args": {"path": "a"}}
    pair: list[Event] = [{"op": "call", **step}, {"op": "outcome", **step, "result": "text"}]
    return [made(first + number, pair[number % 2]) for number in range(2 * times)]


@settings(max_examples=25, deadline=None)
@given(runs, st.integers(1, 6), st.integers(1, 40))
def test_framing_and_crashes_change_no_verdict(events: list[Event], size: int, crash: int) -> None:
    fields = [made(number, event) for number, event in enumerate(events)]
    one = Feed(deployment=DEPLOYMENT, settings=ON).feed(*fields)
    framed = Feed(deployment=DEPLOYMENT, settings=ON)
    for at in range(0, len(fields), size):
        framed.feed(frame(fields[at : at + size]))
    assert said(framed) == said(one)
    broken = Feed(deployment=DEPLOYMENT, settings=ON).feed(*fields[:crash])
    broken.checkpoint()
    before = said(broken)
    broken.restart()
    broken.feed(*fields[crash:])
    assert before + said(broken) == said(one)
    one.checkpoint()
    broken.checkpoint()
    assert broken.rows[b"r"] == one.rows[b"r"]


def test_a_taken_up_run_hears_of_every_target_again() -> None:
    feed = Feed(deployment=DEPLOYMENT, settings=ON).feed(*repeat(12))
    feed.checkpoint()
    feed.restart()
    feed.feed({"v": 1, "type": "run_started", "run": "r", "time": START, "resumed": True})
    (verdict,) = (verdict for _, verdict in feed.partition.verdicts)
    assert verdict.action.value == "block"
    assert [target.signature for target in verdict.applies_to] != [None]


def test_an_operators_release_holds_until_the_result_changes() -> None:
    feed = Feed(deployment=DEPLOYMENT, settings=ON).feed(*repeat(12))
    assert feed.partition.verdicts[-1][1].action.value == "block"
    feed.sources.push("commands", "r", {"action": "release", "by": "me", "reason": "fine"})
    feed.feed(control_of(feed.sources.topics["commands"][0], "commands"))
    released = feed.partition.verdicts[-1][1]
    assert (released.action.value, released.reason) == ("release", "By me: fine")
    assert (released.evidence.by, released.evidence.note) == ("me", "fine")
    count = len(feed.partition.verdicts)
    feed.feed(*repeat(30, first=100))
    assert len(feed.partition.verdicts) == count


def test_without_this_profiles_digests_an_event_is_refused() -> None:
    fields = {"v": 1, "type": "tool_call", "run": "r", "time": 1, "tool": "t", "fp": {"v": 1}}
    feed = Feed(deployment=DEPLOYMENT, settings=ON).feed(fields)
    assert feed.codes == ["no_fingerprint"]


@pytest.mark.parametrize("part", [{"x": 1}, {"detectors": {"cycle": {"warn": "3"}}}])
def test_a_wrong_part_is_refused_and_the_old_one_stays(part: dict[str, Any]) -> None:
    feed = Feed(deployment=DEPLOYMENT, settings=ON)
    feed.sources.push("config", "*", {"enabled": True, "extended": part})
    feed.feed(control_of(feed.sources.topics["config"][1], "config"))
    assert feed.codes == ["settings_refused"]
    feed.feed(*repeat(12))
    assert feed.partition.verdicts


def test_modes_that_change_in_mid_run_reach_it_with_its_next_records() -> None:
    """Down from enforce a block is lifted; up from shadow the loop is stopped after all."""
    feed = Feed(deployment=DEPLOYMENT, settings=ON)
    modes = ("enforce", "shadow", "enforce", "warn", "enforce", "off", "enforce")
    for number, mode in enumerate(modes):
        feed.sources.push("config", "*", {**ON, "mode": mode})
        feed.feed(control_of(feed.sources.topics["config"][-1], "config"))
        feed.feed(*repeat(12, first=100 * number))
        assert bool(feed.partition.live["r"].standing) == (mode == "enforce"), mode
    verdicts = [verdict for _, verdict in feed.partition.verdicts]
    assert {v.mode for v in verdicts if v.action.value == "release"} == {"enforce"}
    assert {v.action.value for v in verdicts if v.mode == "shadow"} == {"block"}


def test_a_warning_says_what_it_stands_in_for() -> None:
    feed = Feed(deployment=DEPLOYMENT, settings={**ON, "mode": "warn"}).feed(*repeat(40))
    told = {verdict.instead_of for _, verdict in feed.partition.verdicts}
    assert told == {None, "block"}
    assert not feed.partition.live["r"].standing


@pytest.mark.parametrize("mode", ["off", "shadow", "warn", "enforce"])
def test_the_guards_mode(mode: str) -> None:
    block = {**ON, "mode": "off", "modes": {"compaction_loop_persisted": mode}}
    feed = Feed(deployment=DEPLOYMENT, settings=block).feed(*repeat(12))
    feed.feed(made(50, {"op": "compaction"}), *repeat(4, first=60))
    expected = {"warn": [("warn", "enforce", "abort")], "off": []}.get(
        mode, [("abort", mode, None)]
    )
    verdicts = [verdict for _, verdict in feed.partition.verdicts]
    assert [(v.action.value, v.mode, v.instead_of) for v in verdicts] == expected
    assert (feed.partition.live["r"].aborted is not None) == (mode == "enforce")
