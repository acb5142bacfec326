"""Any split of the same events into records and checkpoints gives the same verdicts and rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loopstream.events import Verdict
from loopstream.partition import marker_key
from loopstream.policy.deployment import Deployment, Profile
from loopstream.state.pack import pack, unpack
from tests.engine.driver import event_of
from tests.engine.strategies import RUNNING, steps
from tests.partition.driver import (
    START,
    Feed,
    Fields,
    Record,
    Sources,
    as_json,
    control_of,
    ended,
    frame,
    single,
    started,
)

EVENTS = ("nothing", "nothing", "checkpoint", "shrink", "crash", "torn checkpoint")
# Shrinking a counterexample may take minutes; finding none takes seconds.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
LAW = settings(
    max_examples=120,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TINY = {
    "enabled": True,
    "historySize": 9,
    "warningThreshold": 2,
    "criticalThreshold": 4,
    "globalCircuitBreakerThreshold": 6,
    "unknownToolThreshold": 3,
    "postCompactionGuard": {"windowSize": 2},
}
BLOCKS = (
    TINY,
    TINY | {"criticalThreshold": 3},
    TINY | {"historySize": 4},
    TINY | {"mode": "shadow", "modes": {"generic_repeat": "warn"}},
    TINY | {"mode": "warn", "modes": {"ping_pong": "off", "global_circuit_breaker": "enforce"}},
    {"enabled": False},
)
RUNS = ("r1", " r1", "r2", "r3", None)


@dataclass
class Session:
    """Events in order, and the operators' topics that some of them copy."""

    events: list[Fields]
    sources: Sources
    profile: Profile


@st.composite
def sessions(draw: st.DrawFn) -> Session:
    latest = draw(st.booleans())
    sources = Sources()
    sources.push("config", "*", TINY)
    events: list[Fields] = []
    for stretch in draw(st.lists(steps(latest=latest, runs=RUNS, max_parts=3), max_size=5)):
        how = draw(st.sampled_from(RUNNING))
        for step in stretch:
            event = event_of(step, len(events), latest=latest, disposition=how)
            fields = event.model_dump(exclude_none=True, exclude_defaults=False)
            events.append(fields | {"session": "s", "agent": "a"})
        events += draw(_between(sources, len(events)))
    if events:
        events += draw(st.lists(st.sampled_from(events[-20:]), max_size=3))
    return Session(events, sources, "reference-2026-9" if latest else "documented")


@st.composite
def _between(draw: st.DrawFn, sources: Sources, number: int) -> list[Fields]:
    """What operators and runners do now and then."""
    kind = draw(st.integers(0, 6))
    run = draw(st.sampled_from(("r1", "r2", "r3")))
    if kind == 0:
        sources.push("config", "*", draw(st.sampled_from(BLOCKS)))
        return [control_of(sources.topics["config"][-1], "config")]
    if kind == 1:
        order = {"action": draw(st.sampled_from(("release", "abort"))), "by": "ann", "reason": "r"}
        sources.push("commands", run, order)
        return [control_of(sources.topics["commands"][-1], "commands")]
    if kind == 6:
        order = {"action": draw(st.sampled_from(("release", "abort", "abort"))), "agent": "a"}
        sources.push("commands", "a", order)
        return [control_of(sources.topics["commands"][-1], "commands")]
    if kind == 2:
        return [ended(run, id=f"end-{number}", session="s")]
    if kind == 3:
        return [started(run, id=f"start-{number}", session="s", resumed=draw(st.booleans()))]
    if kind == 4:
        return [started(run, id=f"lost-{number}", session="s", type="events_lost", count=3)]
    return []


@st.composite
def splits(draw: st.DrawFn, events: list[Fields]) -> list[bytes]:
    """The events as records: frames of any size, and single ones in either format."""
    records: list[bytes] = []
    at = 0
    while at < len(events):
        how = draw(st.sampled_from((frame, frame, "msgpack", "json")))
        if how == frame:
            size = draw(st.integers(1, 9))
            records.append(frame(events[at : at + size]))
            at += size
        else:
            records.append(single(events[at]) if how == "msgpack" else as_json(events[at]))
            at += 1
    return records


PLACES: Any = {"append_time": True, "evidence": {"partition", "offset", "counted"}}


def spoken(verdicts: list[tuple[str, Verdict]]) -> dict[str, list[object]]:
    """What was said to each run, once each, without positions."""
    said: dict[str, dict[str, object]] = {}
    for scope, verdict in verdicts:
        fields = verdict.model_dump(exclude=PLACES)
        before = said.setdefault(scope, {}).setdefault(verdict.id, fields)
        assert before == fields
    return {scope: list(by_id.values()) for scope, by_id in said.items()}


def rows_of(rows: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """Rows without positions and append times, packed anew."""
    normal: dict[bytes, bytes] = {}
    for key, row in rows.items():
        if key == marker_key(0):
            continue
        state = unpack(key.decode(), row)
        state.offset = state.appended = 0
        state.ended = None if state.ended is None else 0
        for record in state.history.records:
            record.offset = 0
        normal[key] = pack(state)
    return normal


def feed_of(session: Session) -> Feed:
    """A partition whose first owner knew only the first settings."""
    sources = session.sources
    sources.read = 1
    feed = Feed(deployment=Deployment("test", profile=session.profile), sources=sources)
    sources.read = None
    return feed


def in_one(session: Session) -> tuple[dict[str, list[object]], dict[bytes, bytes]]:
    """The reference: one record per event, one checkpoint at the end."""
    feed = feed_of(session)
    feed.feed(*(single(event) for event in session.events))
    feed.checkpoint()
    assert feed.codes == []
    return spoken(feed.partition.verdicts), rows_of(feed.rows)


@LAW
@given(st.data(), sessions())
def test_any_framing_gives_the_same(data: st.DataObject, session: Session) -> None:
    verdicts, rows = in_one(session)
    feed = feed_of(session)
    feed.feed(*data.draw(splits(session.events)))
    feed.checkpoint()
    assert spoken(feed.partition.verdicts) == verdicts
    assert rows_of(feed.rows) == rows


def recorded(values: list[bytes]) -> list[Record]:
    return [Record(offset, value, START + offset) for offset, value in enumerate(values)]


@LAW
@given(st.data(), sessions())
def test_any_checkpoints_and_crashes_give_the_same(data: st.DataObject, session: Session) -> None:
    verdicts, rows = in_one(session)
    feed = feed_of(session)
    said = crashing(data, feed, recorded(data.draw(splits(session.events))))
    assert spoken(said) == verdicts
    assert rows_of(feed.rows) == rows


@LAW
@given(st.data(), sessions())
def test_crashes_change_nothing_for_events_without_id(
    data: st.DataObject, session: Session
) -> None:
    """Only their offsets tell a second delivery; the framing is part of their names."""
    bare = [{name: event[name] for name in event if name != "id"} for event in session.events]
    records = recorded(data.draw(splits(bare)))
    straight = feed_of(session)
    for record in records:
        assert straight.partition.apply(record)
    straight.checkpoint()
    feed = feed_of(session)
    said = crashing(data, feed, records)
    assert spoken(said) == spoken(straight.partition.verdicts)
    assert {key: row for key, row in feed.rows.items() if key[:1] != b"\xff"} == {
        key: row for key, row in straight.rows.items() if key[:1] != b"\xff"
    }


def crashing(data: st.DataObject, feed: Feed, records: list[Record]) -> list[tuple[str, Verdict]]:
    """Deliver the records with checkpoints and crashes in between; all that was said."""
    said: list[tuple[str, Verdict]] = []
    at = committed = 0
    crashes = data.draw(st.integers(0, 4))
    while at < len(records):
        assert feed.partition.apply(records[at])
        at += 1
        event = data.draw(st.sampled_from(EVENTS if crashes else EVENTS[:-2]))
        if event == "checkpoint":
            feed.checkpoint()
            committed = at
        elif event == "shrink":
            feed.partition.shrink(data.draw(st.integers(0, 2)))
        elif event in {"crash", "torn checkpoint"}:
            if event == "torn checkpoint":
                rows_written = feed.partition.take_rows()[:-1]
                feed.rows.update(rows_written[: data.draw(st.integers(0, len(rows_written)))])
            crashes -= 1
            said += feed.partition.verdicts
            feed.restart()
            at = max(0, committed - data.draw(st.integers(0, 5)))
    said += feed.partition.verdicts
    feed.checkpoint()
    return said


def test_events_without_id_are_named_by_their_place() -> None:
    def ids(values: list[bytes]) -> list[str]:
        feed = Feed(settings={"enabled": True}).feed(*values)
        return [verdict.id for _, verdict in feed.partition.verdicts]

    events = [started(resumed=False), *_waiting(2)]
    together, apart = [frame(events)], [single(event) for event in events]
    assert ids(together) == ids(together)
    assert ids(apart) == ids(apart)
    assert len({*ids(together), *ids(apart)}) == 4
    named = [event | {"id": f"e{n}"} for n, event in enumerate(events)]
    assert ids([frame(named)]) == ids([single(event) for event in named])


def _waiting(times: int) -> list[Fields]:
    fp = {"v": 1, "documented": {"args": b"a" * 32}}
    base = {"v": 1, "type": "tool_call", "run": "r1", "time": 1, "tool": "read", "fp": fp}
    return [base | {"disposition": "gated"} for _ in range(times)]
