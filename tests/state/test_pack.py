"""Rows: what is packed comes back, behaves alike, is small, and is checked when it is read."""

from __future__ import annotations

import gc
import hashlib
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from inspect import getmembers, isdatadescriptor

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from loopstream.detect.limits import Limits
from loopstream.engine import Engine, Step
from loopstream.errors import CorruptStateError
from loopstream.events import (
    CallDigests,
    CallFingerprint,
    Compaction,
    Control,
    OutcomeDigests,
    OutcomeFingerprint,
    RunEvent,
    ToolCall,
    ToolOutcome,
)
from loopstream.events.tool import Disposition
from loopstream.policy import verdicts
from loopstream.policy.deployment import Deployment
from loopstream.policy.throttle import announce
from loopstream.policy.verdicts import Position
from loopstream.state.history import History
from loopstream.state.pack import OFFSETS_KEPT, pack, peek, unpack
from loopstream.state.run import TOTALS, RunState, Said
from tests.engine.driver import Driver
from tests.engine.naive import NaiveStep
from tests.engine.strategies import RUNNING, limits, steps

# Shrinking a counterexample may take minutes; finding none takes seconds.
pytestmark = pytest.mark.timeout(600)
LAW = settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
RELEASE = Control(
    v=1, type="control", time=0, source="commands", offset=0, sha256=b"0" * 32, key="r1"
)
Moves = list[tuple[NaiveStep, Disposition] | Control]


@st.composite
def moves(draw: st.DrawFn, *, latest: bool) -> Moves:
    """One run's steps; now and then an operator lets it go on."""
    played: Moves = []
    for step in draw(steps(latest=latest, runs=("r1",), max_parts=6)):
        if draw(st.integers(0, 9)) == 0:
            played.append(RELEASE)
        played.append((step, draw(st.sampled_from(RUNNING))))
    return played


def play(driver: Driver, played: Moves) -> list[object]:
    """Everything that each step says."""
    said: list[object] = []
    for move in played:
        if isinstance(move, Control):
            step = Step(driver.state("r1"), driver.limits, move, driver.at)
            done = driver.engine.release(step, "go on")
        else:
            done = driver.play(*move)
        published = [verdict.model_dump() for verdict in done.verdicts]
        said.append((done.judgement, done.announced, done.guard, done.recorded, published))
    return said


@pytest.mark.slow
@pytest.mark.parametrize("latest", [False, True])
def test_an_unpacked_state_has_the_same_bytes_and_the_same_future(latest: bool) -> None:
    @LAW
    @given(limits(), limits(), moves(latest=latest), moves(latest=latest))
    def law(settled: Limits, later: Limits, past: Moves, future: Moves) -> None:
        lived, restored = Driver(settled, latest=latest), Driver(settled, latest=latest)
        play(lived, past)
        play(restored, past)
        row = pack(lived.state("r1"))
        assert pack(restored.state("r1")) == row  # equal states give equal bytes
        restored.states["r1"] = unpack("r1", row)
        assert pack(restored.state("r1")) == row
        lived.limits = restored.limits = later
        assert play(lived, future) == play(restored, future)
        assert pack(lived.state("r1")) == pack(restored.state("r1"))

    law()


@settings(LAW, max_examples=15)
@given(limits(), moves(latest=True))
def test_a_rows_head_is_read_without_the_rest(settled: Limits, past: Moves) -> None:
    driver = Driver(settled, latest=True)
    play(driver, past)
    state = driver.state("r1")
    state.partition, state.offset, state.appended, state.ended = 7, 2**40, 2**41, 2**41 + 1
    row = pack(state)
    assert peek(row) == peek(row[:64]) == (7, 2**40, 2**41, 2**41 + 1)


def attributes(kind: type) -> list[str]:
    """Of plain Python's class and of the compiled one."""
    return [name for name, _ in getmembers(kind, isdatadescriptor) if name[0] != "_"]


def picture(state: RunState) -> dict[str, object]:
    """Everything that a state holds, but for what is never asked again."""
    guard, history = state.guard, state.history
    plain = {name: getattr(state, name) for name in attributes(RunState)}
    return plain | {
        "guard": [guard.window, guard.remaining, guard.alike, guard.first]
        if guard.remaining
        else None,
        "totals": [getattr(state.totals, name) for name in TOTALS],
        "calls": {
            name: (c.tool, c.poll, c.records, c.streak, c.outcome)
            for name, c in history.calls.items()
        },
        "pending": {
            name: [r.call_id for r in waiting] for name, waiting in history.pending.items()
        },
        "tail": (history.tail, history.tail_unsettled, history.tail_mismatches),
        "unknown": history.unknown_streak(),
        "history": [
            (
                *(r.call.signature, r.call_id if r.pending else None, r.offset, r.result),
                *(r.unknown_tool, r.vetoed, r.no_progress, r.failure),
            )
            for r in history.records
        ],
    }


@pytest.mark.slow
@pytest.mark.parametrize("latest", [False, True])
def test_every_field_comes_back(latest: bool) -> None:
    @LAW
    @given(limits(), moves(latest=latest))
    def law(settled: Limits, past: Moves) -> None:
        driver = Driver(settled, latest=latest)
        play(driver, past)
        state = driver.state("r1")
        assert picture(unpack("r1", pack(state))) == picture(state)

    law()


def test_a_history_goes_without_the_cycle_collector() -> None:
    # The compiled build hides its records from it: `acyclic` in state/record.py.
    settled = replace(TIGHT, history_size=30)
    driver = Driver(settled)
    state = driver.state("r1")
    for number in range(40):  # equal ones and others, some of them in flight
        driver.engine.step(state, call_event(number % 7, number), settled, at(2 * number))
        if number % 3:
            event = outcome_event(number % 7, number)
            driver.engine.step(state, event, settled, at(2 * number + 1))
    history = unpack("r1", pack(state)).history
    assert history.pending
    gc.collect()
    gc.disable()
    try:
        state.history = history
        del history
        state.history = History()
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_a_guard_in_mid_window_comes_back() -> None:
    guarded = replace(TIGHT, enabled=False, guard_window=4)
    driver = Driver(guarded)
    state = driver.state("r1")
    compaction = Compaction(v=1, type="compaction", run="r1", time=1, retried=True)
    driver.engine.step(state, compaction, guarded, at(0))
    for number, args in enumerate((1, 2, 1, 1)):
        state = unpack("r1", pack(state))
        step = driver.engine.step(state, outcome_event(args, number), guarded, at(number))
        assert (step.guard.remaining, step.guard.abort) == (3 - number, False)


# -- damaged rows ----------------------------------------------------------------------------


def rich_row() -> bytes:
    """A row with something in every field."""
    driver = Driver(replace(TIGHT, guard_window=5))
    state = driver.state("r1")
    for number in range(12):
        call = driver.engine.step(state, call_event(number % 2, number), TIGHT, at(number))
        assert call is not None
        driver.engine.step(state, outcome_event(number % 2, number), TIGHT, at(number))
    driver.engine.step(state, call_event(5, 99, call_id="pending"), TIGHT, at(50))
    compaction = Compaction(v=1, type="compaction", run="r1", time=1, retried=True)
    driver.engine.step(state, compaction, TIGHT, at(51))
    driver.engine.step(state, outcome_event(6, 100), TIGHT, at(52))
    state.run = state.agent = state.session = state.runner = "x"
    state.recent_ids = [bytes([n]) * 16 for n in range(3)]
    state.mutes = [b"m" * 16]
    state.ended, state.key_id, state.ordered = 5, "k", 7
    return pack(state)


def damage(draw: st.DrawFn, row: bytes) -> bytes:
    data = bytearray(row)
    for _ in range(draw(st.integers(1, 3))):
        at_byte = draw(st.integers(0, max(len(data) - 1, 0)))
        kind = draw(st.sampled_from(("change", "cut", "insert", "end")))
        if kind == "change":
            data[at_byte : at_byte + 1] = draw(st.binary(min_size=1, max_size=1))
        elif kind == "cut":
            del data[at_byte : at_byte + draw(st.integers(1, 9))]
        elif kind == "insert":
            data[at_byte:at_byte] = draw(st.binary(min_size=1, max_size=5))
        else:
            del data[at_byte:]
    return bytes(data)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    return damage(draw, ROW)


@pytest.mark.slow
@settings(LAW, max_examples=1_500)
@given(damaged() | st.binary(max_size=100))
@example(b"")
@example(b"\x91" * 100_000)
@example(b"\xdd\xff\xff\xff\xff")
@example(b"\xc1")
def test_damaged_rows_only_ever_raise_corrupt_state(row: bytes) -> None:
    for data in (row, row[:-1], row[:40]):
        for read in (peek, lambda row: unpack("r1", row)):
            with suppress(CorruptStateError):
                read(data)


def test_every_truncation_is_corrupt() -> None:
    for length in range(len(ROW)):
        with pytest.raises(CorruptStateError):
            unpack("r1", ROW[:length])


@pytest.mark.parametrize("head", [b"\x00", b"\x02", b"\xc0", b"\xa11", b"\xcc\xff"])
def test_another_version_is_corrupt(head: bytes) -> None:
    row = ROW[:3] + head + ROW[4:]
    assert ROW[3:4] == b"\x01"
    for read in (peek, lambda data: unpack("r1", data)):
        with pytest.raises(CorruptStateError) as caught:
            read(row)
        assert caught.value.hint


# -- sizes -----------------------------------------------------------------------------------

TIGHT = Limits(enabled=True, warning=2, critical=4, breaker=6, unknown_tool=3)
DEFAULT = Limits(enabled=True)
WIDE = Limits(
    enabled=True,
    history_size=10_000,
    warning=9_000,
    critical=9_500,
    breaker=9_900,
    unknown_tool=9_999,
)
# Records of other runs between two of one run.
SPACING = 1_000
RUN = str(uuid.UUID(int=2**127 + 12_345))


def digest(value: object) -> bytes:
    return hashlib.sha256(repr(value).encode()).digest()


def at(offset: int) -> Position:
    return Position(3, 8_000_000_000 + offset * SPACING, 0, 1_700_000_000_000 + offset)


def call_event(
    args: object, number: int, tool: str = "read_file", call_id: str | None = None
) -> RunEvent:
    return ToolCall(
        v=1,
        type="tool_call",
        id=str(uuid.UUID(int=number)),
        run=RUN,
        time=1_700_000_000_000 + number,
        tool=tool,
        call_id=call_id,
        fp=CallFingerprint(documented=CallDigests(args=digest(args))),
    )


def outcome_event(
    args: object,
    number: int,
    tool: str = "read_file",
    call_id: str | None = None,
    result: object = "same",
) -> RunEvent:
    outcome = OutcomeDigests(args=digest(args), result=digest(result))
    return ToolOutcome(
        v=1,
        type="tool_outcome",
        id=str(uuid.UUID(int=number)),
        run=RUN,
        time=1_700_000_000_000 + number,
        tool=tool,
        call_id=call_id,
        fp=OutcomeFingerprint(documented=outcome),
    )


def call_name(number: int) -> str:
    return f"call_{number:019d}"


def run_state() -> RunState:
    """A run as a worker has it: identity, numbering, settings, the newest verdict."""
    state = RunState(RUN, 3)
    state.run, state.session = RUN, str(uuid.UUID(int=77))
    state.agent, state.runner = "researcher", "worker-7f9c4-host-12:31337"
    state.epoch, state.seq, state.key_id = 1_700_000_000_000, 412, ""
    state.ordered = 10**9
    return state


def fold(state: RunState, events: list[RunEvent], settled: Limits) -> RunState:
    engine = Engine(Deployment("fleet"))
    for number, event in enumerate(events):
        engine.step(state, event, settled, at(number))
    state.offset, state.appended = at(len(events)).offset, 1_700_000_000_000
    return state


def test_thirty_different_calls_fit_in_2500_bytes() -> None:
    events: list[RunEvent] = []
    for number in range(30):
        name = call_name(number)
        tool = ("read_file", "exec", "web_search")[number % 3]
        events += [
            call_event(number, number, tool, name),
            outcome_event(number, number, tool, name, result=("of", number)),
        ]
    state = fold(run_state(), events, DEFAULT)
    state.last_verdict = Said("warn", "warning", "generic_repeat", 10, "exec", None, 10**12)
    assert len(state.history) == 30
    assert 1_900 < len(pack(state)) <= 2_500


def test_a_looping_run_fits_in_600_bytes() -> None:
    events: list[RunEvent] = []
    for number in range(40):
        name = call_name(number)
        events += [call_event(0, number, "exec", name), outcome_event(0, number, "exec", name)]
    state = fold(run_state(), [*events, call_event(0, 41, "exec", call_name(41))], DEFAULT)
    assert len(state.history) == 30
    assert state.standing
    assert state.throttle
    assert state.last_verdict is not None
    assert state.history.records[-1].pending
    assert len(pack(state)) <= 600


WORST: dict[str, Callable[[int], list[RunEvent]]] = {
    "settled": lambda n: [
        call_event(n, n, LONG, long_id(n)),
        outcome_event(n, n, LONG, long_id(n), result=("other", n)),
    ],
    "pending": lambda n: [call_event(n, n, LONG, long_id(n))],
    "pending, 128 bytes": lambda n: [call_event(n, n, LONG, f"{n:0128d}")],
    "pending, 32 bytes": lambda n: [call_event(n, n, LONG, f"{n:032d}")],
}
LONG = "a_tool_with_a_name_" * 20


def long_id(number: int) -> str:
    return f"{number:0300d}"


@pytest.mark.slow
@pytest.mark.parametrize("name", WORST)
def test_the_largest_history_fits_in_a_kafka_record(name: str) -> None:
    events = [event for number in range(10_000) for event in WORST[name](number)]
    state = fold(run_state(), events, WIDE)
    for number in range(300):
        announce(state.throttle, RUN, f"generic:{number}", 20, "first")
    state.agent = state.session = state.runner = state.key_id = "n" * 128
    state.recent_ids = [digest(number)[:16] for number in range(64)]
    state.mutes = [digest(number)[:16] for number in range(64)]
    row = pack(state)
    assert len(state.history) == 10_000
    assert len(state.throttle) == 256
    assert len(row) < 900_000
    assert pack(unpack(RUN, row)) == row


def test_evidence_is_packed_as_far_as_it_is_looked_at() -> None:
    assert verdicts._LOOKED_AT <= OFFSETS_KEPT
    events = [call_event(number, number) for number in range(200)]
    state = fold(run_state(), events, WIDE)
    kept = [record.offset for record in unpack(RUN, pack(state)).history.records]
    assert kept[-64:] == [record.offset for record in state.history.records][-64:]
    assert set(kept[:-64]) == {0}


ROW = rich_row()
