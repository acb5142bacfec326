"""What an operator released or aborted is told in the operator's words, wherever it is told."""

from __future__ import annotations

from typing import Any

import pytest

from loopstream.policy.deployment import Deployment, Mode, Profile
from loopstream.policy.summary import summary_of
from loopstream.state.pack import pack, unpack
from tests.extended.test_partition import made
from tests.partition.driver import START, Feed, Fields, control_of

ON = {"enabled": True}
WORDS = "By Ada: the file is there now"
NEXT = {"v": 1, "type": "compaction", "run": "r", "time": START + 99_000, "succeeded": False}
PROFILES: list[Profile] = ["documented", "reference-2026-9", "extended"]
_LONGER = 30


def stuck(times: int = _LONGER, first: int = 0) -> list[Fields]:
    step: dict[str, Any] = {"tool": "read", "args": {"path": "a"}}
    pair: list[dict[str, Any]] = [
        {"op": "call", **step},
        {"op": "outcome", **step, "result": "text"},
    ]
    return [made(first + at, pair[at % 2]) | {"agent": "x"} for at in range(2 * times)]


def order(feed: Feed, action: str, key: str = "r", **more: str) -> Fields:
    body = {"action": action, "by": "Ada", "reason": "the file is there now"} | more
    feed.sources.push("commands", key, body)
    return control_of(feed.sources.topics["commands"][-1], "commands")


def opened(profile: Profile, mode: Mode = "enforce") -> Feed:
    return Feed(deployment=Deployment("test", profile=profile, mode=mode), settings=ON)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("mode", ["enforce", "shadow"])
@pytest.mark.parametrize("of_agent", [False, True])
@pytest.mark.parametrize("action", ["release", "abort"])
def test_every_verdict_of_an_order_has_its_words_and_a_time_of_the_run(
    profile: Profile, mode: Mode, of_agent: bool, action: str
) -> None:
    feed = opened(profile, mode).feed(*stuck())
    before = len(feed.partition.verdicts)
    if of_agent:
        feed.feed(order(feed, action, "x", agent="x"), NEXT)
    else:
        feed.feed(order(feed, action))
    told = [v for _, v in feed.partition.verdicts[before:] if v.action.value == action]
    assert told
    state = feed.partition.live["r"]
    for verdict in told:
        assert verdict.reason == WORDS
        assert verdict.evidence.by == "Ada"
        assert START < verdict.event_time == state.last_event
    shown = summary_of(unpack("r", pack(state)))
    assert (shown["action"], shown["reason"]) == (action, WORDS)
    assert shown["verdict_time"] == state.last_event
    assert bool(shown["standing"]) is (action == "abort")
    assert shown["status"] == ("aborted" if action == "abort" else "warned")


@pytest.mark.parametrize("profile", PROFILES)
def test_an_abort_stays_what_is_told_until_the_run_ends(profile: Profile) -> None:
    feed = opened(profile).feed(*stuck())
    feed.feed(order(feed, "abort"), *stuck(3, first=2 * _LONGER))
    again = {"v": 1, "type": "run_started", "run": "r", "time": START, "resumed": True}
    feed.feed(again)
    assert summary_of(feed.partition.live["r"])["reason"] == WORDS
    assert feed.partition.verdicts[-1][1].reason.endswith(WORDS)


def test_the_pattern_says_for_itself_when_it_no_longer_holds() -> None:
    feed = opened("documented").feed(*stuck())
    other = {"tool": "read", "args": {"path": "a"}, "op": "outcome", "result": "news"}
    feed.feed(*stuck(1, first=2 * _LONGER)[:1], made(99, other))
    (released,) = [v for _, v in feed.partition.verdicts if v.action.value == "release"]
    assert released.reason.endswith("the pattern no longer holds.")
    assert released.evidence.by is None


def test_a_run_of_which_only_the_command_is_known_has_the_time_of_its_record() -> None:
    feed = opened("documented")
    feed.feed(order(feed, "abort"))
    ((_, verdict),) = feed.partition.verdicts
    assert verdict.event_time == verdict.append_time == START


def test_each_changed_standing_is_shown_with_the_next_rows() -> None:
    """Counts may wait; whatever people act on does not."""
    feed = opened("documented")
    last: dict[str, Any] = {}
    fields = [*stuck(), {"op": "release"}, *stuck(40, first=2 * _LONGER), {"op": "abort"}]
    shown = []
    for each in fields:
        feed.feed(order(feed, each["op"]) if "op" in each else each)
        feed.checkpoint()
        for _, summary in feed.partition.summaries():
            last = summary
            shown.append(summary)
        now = summary_of(feed.partition.live["r"])
        for name in ("status", "standing", "action", "reason", "warnings"):
            assert last.get(name) == now.get(name), name
    assert len(shown) < len(fields) // 2
