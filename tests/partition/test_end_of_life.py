"""When a run is over: after its end, after a long silence; by append times alone."""

from __future__ import annotations

from loopstream.partition import MARKER_PREFIX, marker_key, row_position
from loopstream.partition.summaries import Summaries
from loopstream.policy.deployment import Deployment
from loopstream.state.run import RunState
from tests.partition.driver import START, Feed, call, ended, frame, outcome, started

ON = {"enabled": True, "warningThreshold": 2, "criticalThreshold": 4}
IDLE = Feed().deployment.idle_ms
GRACE = Feed().deployment.grace_ms


def looping(feed: Feed, at: int = START, times: int = 4) -> Feed:
    for _ in range(times):
        feed.feed(call(), outcome(), at=at)
    return feed


def test_events_within_the_grace_still_fold_and_are_noted() -> None:
    feed = looping(Feed(settings=ON)).feed(ended())
    feed.feed(call(), at=START + GRACE)
    assert feed.counts["after_end"] == 1
    assert feed.said()[-1] == ("block", "generic_repeat", 4)
    assert feed.history() == 5


def test_events_past_the_grace_begin_a_new_life() -> None:
    feed = looping(Feed(settings=ON)).feed(ended(runner="one"))
    feed.feed(call(runner="two"), at=START + GRACE + 1)
    assert feed.counts["expired"] == 1
    assert "after_end" not in feed.counts
    assert (feed.codes, feed.history()) == ([], 1)
    assert feed.partition.live["r1"].standing == {}


def test_a_run_that_starts_again_within_the_grace_begins_anew() -> None:
    feed = looping(Feed(settings=ON)).feed(ended(), started(runner="another"), call())
    assert feed.history() == 1
    assert feed.partition.live["r1"].standing == {}
    assert feed.said()[-1] == ("block", "generic_repeat", 4)


def test_a_run_that_is_resumed_within_the_grace_is_told_what_stands() -> None:
    feed = looping(Feed(settings=ON)).feed(ended(), started(resumed=True))
    assert feed.said() == [
        ("warn", "generic_repeat", 2),
        ("block", "generic_repeat", 4),
        ("block", "generic_repeat", 4),
    ]
    assert feed.history() == 4


def test_silence_up_to_the_limit_is_no_end() -> None:
    feed = looping(Feed(settings=ON))
    feed.feed(call(), at=START + IDLE)
    assert feed.history() == 5
    feed.feed(call(), at=START + 2 * IDLE + 1)
    assert (feed.history(), feed.counts["expired"]) == (1, 1)


def test_a_refused_event_does_not_keep_a_run_alive() -> None:
    feed = looping(Feed(settings=ON))
    feed.feed(call(fp={"v": 1}), at=START + IDLE)
    feed.feed(call(), at=START + IDLE + 1)
    assert feed.history() == 1


def test_dead_rows_are_known_and_forgotten_once() -> None:
    feed = looping(Feed(settings=ON))
    feed.checkpoint()
    assert not feed.partition.expired(feed.rows[b"r1"])
    feed.feed(call("other"), at=START + IDLE + 1)
    assert feed.partition.expired(feed.rows[b"r1"])
    assert feed.partition.forget("r1")
    del feed.rows[b"r1"]
    feed.checkpoint()
    assert feed.history() == 0
    feed.feed(call(), at=START + IDLE + 2)
    assert feed.history() == 1


def test_a_row_with_new_life_in_it_is_not_forgotten() -> None:
    feed = looping(Feed(settings=ON))
    feed.checkpoint()
    feed.feed(call(), at=START + IDLE + 1)
    assert not feed.partition.forget("r1")
    assert feed.history() == 1


def test_live_states_that_are_written_may_be_forgotten() -> None:
    feed = Feed().feed(frame([call(f"r{n}") for n in range(10)]))
    feed.partition.shrink(3)
    assert len(feed.partition.live) == 10
    feed.checkpoint()
    feed.feed(call("r9"))
    feed.partition.shrink(3)
    assert len(feed.partition.live) == 3
    assert "r9" in feed.partition.live
    feed.feed(*(call(f"r{n}") for n in range(10)))
    assert {feed.history(f"r{n}") for n in range(9)} == {2}
    assert feed.history("r9") == 3


def test_rows_say_where_they_stand() -> None:
    feed = Feed().feed(call(), call("r2"), call())
    feed.checkpoint()
    assert row_position(feed.rows[b"r1"]) == (0, 2)
    assert row_position(feed.rows[b"r2"]) == (0, 1)
    assert row_position(feed.rows[marker_key(0)]) == (0, 2)
    assert marker_key(0).startswith(MARKER_PREFIX)
    assert feed.partition.dirty == 0


def test_what_was_shown_of_a_forgotten_run_is_forgotten_too() -> None:
    summaries, state = Summaries(Deployment("test")), RunState("r1", 0)
    shown = []
    for forget in (False, False, True):
        if forget:
            summaries.forget("r1")
        shown.append(len(list(summaries.of([state]))))
    assert shown == [1, 0, 1]


def test_records_without_an_append_time_are_of_time_zero() -> None:
    feed = Feed(settings=ON).feed(*[call(), outcome()] * 12, b"\xc1", at=-1)
    assert feed.history() == 12
    assert {verdict.append_time for _, verdict in feed.partition.verdicts} == {0}
    assert [letter.append_time for letter in feed.partition.dead_letters] == [0]
