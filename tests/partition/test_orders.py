"""Orders for all runs of an agent: one record, taken up by each run with its next event."""

from __future__ import annotations

import json
from typing import Any

import pytest

from loopstream.events import Verdict
from loopstream.partition import Partition
from loopstream.partition.marker import Marker, marker_key, state_from_pin
from loopstream.partition.orders import MAX_AGENTS
from loopstream.policy.deployment import Deployment
from loopstream.wire.routing import partition_of
from tests.partition.driver import (
    START,
    Feed,
    Fields,
    Record,
    Sources,
    call,
    control_of,
    ended,
    frame,
    outcome,
    single,
    started,
)

ON = {"enabled": True, "warningThreshold": 2, "criticalThreshold": 4}


def order(feed: Feed, action: str = "abort", agent: str = "x", **more: Any) -> Fields:
    body = {"action": action, "agent": agent, "by": "ann", "reason": "seen"} | more
    feed.sources.push("commands", agent, body)
    return control_of(feed.sources.topics["commands"][-1], "commands")


def told(feed: Feed) -> list[tuple[str | None, str, str]]:
    return [(v.run, v.action.value, v.detector) for _, v in feed.partition.verdicts]


def looping(run: str, times: int = 4, agent: str = "x") -> list[Fields]:
    pair = (call(run, agent=agent), outcome(run, agent=agent))
    return [event for _ in range(times) for event in pair]


def test_each_run_takes_it_with_its_next_event() -> None:
    feed = Feed().feed(call("r1", agent="x"), call("r2", agent="x"), call("r3", agent="y"))
    feed.feed(order(feed))
    assert told(feed) == []
    feed.feed(call("r3"), call("r1"), call("r1"))
    assert told(feed) == [("r1", "abort", "operator")]
    verdict = feed.partition.verdicts[0][1]
    assert verdict.reason == "By ann: seen"
    evidence = verdict.evidence
    assert (evidence.by, evidence.note, evidence.command) == ("ann", "seen", 0)
    assert evidence.offset == 5
    feed.feed(outcome("r2"))
    assert told(feed)[1:] == [("r2", "abort", "operator")]
    assert feed.counts["control"] == 1
    assert feed.partition.pending_controls() == []


def test_who_begins_later_or_has_ended_is_not_meant() -> None:
    feed = Feed().feed(call("r1", agent="x"), call("r2", agent="x"), ended("r1"))
    feed.feed(order(feed))
    feed.feed(started("r1"), call("r1"), call("new", agent="x"), call("new"), call("late"))
    feed.feed(call("late", agent="x"), call("late"))
    assert told(feed) == []
    feed.feed(call("r2"))
    assert told(feed) == [("r2", "abort", "operator")]


def test_a_run_long_dead_that_comes_again_is_new() -> None:
    feed = Feed().feed(call("r1", agent="x"))
    feed.feed(order(feed))
    feed.feed(call("r1", agent="x"), at=START + feed.deployment.idle_ms + 1)
    assert told(feed) == []


def test_what_is_refused_in_all_runs_is_released() -> None:
    feed = Feed(settings=ON).feed(*looping("r1"), *looping("r2"))
    before = len(feed.partition.verdicts)
    feed.feed(order(feed, "release"), call("r2"), call("r1"))
    assert told(feed)[before:] == [
        ("r2", "release", "generic_repeat"),
        ("r1", "release", "generic_repeat"),
    ]
    assert not feed.partition.live["r1"].standing


def test_the_newest_order_counts() -> None:
    feed = Feed().feed(call("r1", agent="x"))
    feed.feed(order(feed), order(feed, "release"), call("r1"))
    assert told(feed) == []
    assert feed.partition.live["r1"].aborted is None


def test_a_command_to_one_run_comes_after_an_order_before_it() -> None:
    feed = Feed().feed(call("r1", agent="x"))
    feed.feed(order(feed))
    feed.sources.push("commands", "r1", {"action": "release"})
    feed.feed(control_of(feed.sources.topics["commands"][-1], "commands"), call("r1"))
    assert told(feed) == [("r1", "abort", "operator"), ("r1", "release", "operator")]
    assert feed.partition.live["r1"].aborted is None


@pytest.mark.parametrize("crash", [True, False])
def test_it_outlives_the_worker(crash: bool) -> None:
    feed = Feed().feed(call("r1", agent="x"), call("r2", agent="x"))
    feed.checkpoint()
    feed.feed(order(feed), call("r1"))
    if not crash:
        feed.checkpoint()
    feed.restart()
    if crash:
        feed.offset = 1
        feed.feed(control_of(feed.sources.topics["commands"][0], "commands"), call("r1"))
    feed.feed(call("r2"), call("r1"))
    first = [("r1", "abort", "operator")] if crash else []
    assert told(feed) == [*first, ("r2", "abort", "operator")]


def test_replay_comes_to_the_same() -> None:
    feed = Feed(settings=ON)
    records = [single(event) for event in (*looping("r1"), *looping("r2", 2))]
    records += [single(order(feed)), single(call("r2")), single(call("r1")), single(call("r1"))]
    feed.feed(*records)
    pinned = state_from_pin(0, feed.partition.pin(0))
    again = Partition(feed.deployment, 0, 1, {}, feed.sources, state=pinned)
    for offset, value in enumerate(records):
        assert again.apply(Record(offset, value))
    assert again.verdicts == feed.partition.verdicts
    assert [verdict.action.value for _, verdict in again.verdicts].count("abort") == 2


def test_every_partition_takes_it_up() -> None:
    sources, heard = Sources(), []
    names = [f"r{number}" for number in range(30)]
    feeds = [
        Feed(partitions=3, number=n, deployment=Deployment("test"), sources=sources)
        for n in range(3)
    ]
    for name in names:
        feeds[partition_of(name, 3)].feed(call(name, agent="x"))
    sources.push("commands", "x", {"action": "abort", "agent": "x"})
    sources.push("commands", "x", {"action": "abort"})  # one to a run that is called so
    for feed in feeds:
        pending = [
            control.model_dump(exclude_none=True) for control in feed.partition.pending_controls()
        ]
        heard.append(len(pending))
        feed.feed(*pending)
    assert sorted(heard) == [1, 1, 2]
    said: list[tuple[str, Verdict]] = []
    for name in names:
        feed = feeds[partition_of(name, 3)].feed(call(name))
        said += feed.partition.verdicts
        feed.partition.verdicts.clear()
    assert [verdict.run for _, verdict in said if verdict.run in names] == names


@pytest.mark.parametrize("body", [{"agent": "y"}, {"agent": None}, {"agent": ["x"]}, {"agent": 1}])
def test_one_that_is_not_its_keys_is_refused(body: Fields) -> None:
    feed = Feed().feed(call("r1", agent="x"))
    feed.sources.push("commands", "x", {"action": "abort", **body})
    feed.feed(control_of(feed.sources.topics["commands"][-1], "commands"), call("r1"))
    assert feed.codes == ["invalid"]
    assert told(feed) == []


def test_they_are_bounded_and_forgotten() -> None:
    feed = Feed()
    for number in range(MAX_AGENTS + 1):
        feed.feed(order(feed, agent=f"a{number}"))
    assert feed.codes == ["invalid"]
    feed.feed(order(feed, agent="a3"))
    feed.checkpoint()
    marker = Marker.unpack(feed.rows[marker_key(0)])
    assert len(marker.orders) == MAX_AGENTS
    assert marker.orders["a3"].offset == MAX_AGENTS + 1
    feed.feed(order(feed, agent="b"), at=START + 2 * feed.deployment.idle_ms + 1)
    feed.checkpoint()
    assert list(Marker.unpack(feed.rows[marker_key(0)]).orders) == ["b"]


def test_a_marker_without_any_keeps_its_bytes() -> None:
    feed = Feed(settings=ON)
    marker = Marker.unpack(feed.rows[marker_key(0)])
    assert marker.orders == {}
    assert json.loads(marker.settings["*"]) == ON
    assert marker.pack() == feed.rows[marker_key(0)]


def test_in_one_frame_with_the_runs_own_events() -> None:
    feed = Feed()
    mixed = frame([call("r1", agent="x"), order(feed), call("r1"), call("new", agent="x")])
    feed.feed(mixed, call("new"))
    assert told(feed) == [("r1", "abort", "operator")]
