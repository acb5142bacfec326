"""What the dashboard holds, and that it is bounded: cursor, ring, roll, rates."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loopstream.events import Verdict
from loopstream.events.summary import RunSummary
from loopstream.web.cursor import decode, encode
from loopstream.web.rates import STEP_MS, STEPS, Rates
from loopstream.web.ring import Ring, Said
from loopstream.web.roll import Roll

OFFSETS = st.integers(0, 2**63 - 1)


def verdict(number: int, **more: object) -> Verdict:
    fields: dict[str, object] = {
        "id": f"{number:032x}",
        "seq": 1,
        "scope": "r",
        "run": "r",
        "agent": "a",
        "action": "block",
        "level": "critical",
        "detector": "generic_repeat",
        "count": 20,
        "threshold": 20,
        "tool": "exec",
        "key": "k",
        "reason": "because",
        "evidence": {"event": "e", "partition": 0, "offset": 0},
        "profile": "documented",
        "settings": "0" * 16,
        "event_time": 0,
        "append_time": 0,
    }
    return Verdict.model_validate(fields | more, strict=False)


def said(number: int, partition: int, offset: int, size: int = 100) -> Said:
    return Said(verdict(number), partition, offset, size)


@given(st.lists(OFFSETS, min_size=1, max_size=64))
def test_a_cursor_is_read_back(nexts: list[int]) -> None:
    assert decode(encode(nexts), len(nexts)) == tuple(nexts)


@given(st.text(max_size=200), st.integers(1, 8))
def test_anything_else_is_no_cursor(text: str, partitions: int) -> None:
    found = decode(text, partitions)
    if found is not None:
        assert all(number >= 0 for number in found)
        assert len(found) == partitions


def test_a_cursor_of_other_topics_is_none() -> None:
    assert decode("1.2", 3) is None
    assert decode(None, 1) is None
    assert decode("1" * 20_000, 1) is None


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 400)), max_size=80),
    st.integers(0, 80),
    st.integers(1, 40),
    st.integers(100, 4_000),
)
def test_who_comes_back_is_told_exactly_what_was_missed_or_that_it_is_too_late(
    arrivals: list[tuple[int, int]], left_at: int, most: int, most_bytes: int
) -> None:
    ring = Ring((5, 0, 9), max_verdicts=most, max_bytes=most_bytes)
    nexts, cursor, missed = [5, 0, 9], ring.cursor, list[int]()
    for number, (partition, size) in enumerate(arrivals):
        if number == left_at:
            cursor, missed = ring.cursor, []
        ring.add(said(number, partition, nexts[partition], size))
        nexts[partition] += 1
        missed.append(number)
    place = decode(cursor, 3)
    assert place is not None
    told = ring.after(place)
    held = {int(each.verdict.id, 16) for each in ring.newest()}
    if told is None:
        assert not set(missed) <= held
    else:
        assert [int(each.verdict.id, 16) for each in told] == missed
    assert len(ring) <= most
    assert sum(each.size for each in ring.newest()) <= most_bytes


def test_a_stream_that_is_too_slow_is_told_so() -> None:
    ring = Ring((0,), max_verdicts=3)
    for number in range(3):
        ring.add(said(number, 0, number))
    assert [each.number for each in ring.since(1) or ()] == [2, 3]
    assert ring.since(3) == []
    ring.add(said(3, 0, 3))
    assert ring.since(0) is None
    assert [each.number for each in ring.since(1) or ()] == [2, 3, 4]


def test_a_verdict_published_twice_is_shown_once() -> None:
    ring = Ring((0,))
    assert ring.add(said(1, 0, 0)) is not None
    assert ring.add(said(1, 0, 1)) is None
    assert len(ring) == 1
    assert ring.nexts == [2]


def test_a_cursor_of_a_topic_that_was_made_anew_is_too_late() -> None:
    ring = Ring((0,))
    assert ring.after((7,)) is None
    assert ring.after((0, 0)) is None


def summary(run: str, status: str = "active", last_event: int = 0) -> RunSummary:
    fields = {"scope": run, "run": run, "agent": "a", "status": status, "last_event": last_event}
    return RunSummary.model_validate(fields | {"partition": 0, "offset": 0})


def test_runs_silent_for_longest_are_forgotten_first() -> None:
    roll = Roll(idle_ms=1000, max_runs=2)
    for name in ("one", "two", "one", "three"):
        roll.put(name, summary(name), 10)
    assert [run.run for run in roll.newest()] == ["three", "one"]
    assert roll.forgotten == 1
    roll.put("one", None, 0)
    assert roll.get("one") is None
    assert len(roll) == 1


def test_runs_are_bounded_in_bytes() -> None:
    roll = Roll(idle_ms=1000, max_bytes=100)
    for number in range(10):
        roll.put(str(number), summary(str(number)), 30)
    assert len(roll) == 3


def test_who_is_silent_for_too_long_is_not_live() -> None:
    roll = Roll(idle_ms=1000)
    for name, status in (("a", "active"), ("w", "warned"), ("b", "blocked"), ("e", "ended")):
        roll.put(name, summary(name, status, 5_000), 10)
    roll.put("x", summary("x", "aborted", 0), 10)
    assert roll.counts(5_500) == {"active": 3, "blocked": 1, "shadow": 0, "aborted": 1}
    assert roll.counts(6_000) == {"active": 0, "blocked": 0, "shadow": 0, "aborted": 1}
    assert [run.run for run in roll.live_of("a", 5_500)] == ["b", "w", "a"]
    assert roll.live_of("b", 5_500) == []


def test_the_chart_holds_a_quarter_of_an_hour() -> None:
    rates, now = Rates(), 1_000_000 * STEP_MS
    for step in range(3 * STEPS):
        rates.add(now + step * STEP_MS, "warn", now + step * STEP_MS)
    end = now + (3 * STEPS - 1) * STEP_MS
    series = rates.series(end)
    assert series["warn"] == [1] * STEPS
    assert series["block"] == [0] * STEPS
    assert rates.last_minute(end) == 6
    rates.add(0, "abort", end)
    assert sum(rates.series(end)["abort"]) == 0
    assert len(rates._steps) <= 2 * STEPS + 1


def test_what_is_only_in_shadow_is_not_blocked() -> None:
    roll = Roll(idle_ms=1_000)
    for name, mode in (("a", None), ("b", "shadow"), ("c", "shadow")):
        fields = {"scope": name, "run": name, "status": "blocked", "mode": mode, "last_event": 1}
        roll.put(name, RunSummary.model_validate(fields | {"partition": 0, "offset": 1}), 10)
    assert roll.counts(2) == {"active": 3, "blocked": 1, "shadow": 2, "aborted": 0}
