"""A step costs the same with a long history as with a short one: lines executed, not time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, islice
from types import FrameType
from typing import Any

import pytest

from loopstream.detect.limits import Limits
from loopstream.engine import Engine
from loopstream.policy.deployment import Deployment
from loopstream.policy.verdicts import Position
from loopstream.state.run import RunState
from tests.engine.driver import event_of
from tests.engine.naive import Call, NaiveStep, Outcome
from tests.engine.strategies import digest, signature

SHORT, LONG = 30, 3_000
# The same rules speak in both: what is compared is the length alone.
EARLY = Limits(enabled=True, warning=3, critical=4, unknown_tool=3, breaker=5)
MEASURED = 120
Mix = Callable[[int], tuple[str, str]]

# Which call the n-th is, and what came of it.
MIXES: dict[str, Mix] = {
    "looping": lambda _: ("a", "same"),
    "looping with progress": lambda n: ("a", str(n)),
    "healthy": lambda n: (str(n), str(n)),
    "healthy, few calls": lambda n: (str(n % 7), str(n)),
    "ping-pong": lambda n: ("ab"[n % 2], "same"),
    "ping-pong with progress": lambda n: ("ab"[n % 2], str(n)),
    "stuck rotation": lambda n: (str(n % 5), "same"),
    "unknown tool": lambda n: (str(n), "unknown"),
    "now and then": lambda n: ("a" if n % 6 == 0 else str(n), "same"),
}


def played(mix: Mix, *, late: int) -> Iterator[NaiveStep]:
    """Calls, each settled ``late`` calls after it was made."""
    for number in count():
        args, _ = mix(number)
        yield Call("read", signature("read", args), False, f"c{number}", "r1")
        if number >= late:
            args, result = mix(number - late)
            yield outcome(args, result, f"c{number - late}")


def outcome(args: str, result: str, call_id: str) -> Outcome:
    named = signature("read", args)
    if result == "unknown":
        text = "error:" + digest("unknown")
        return Outcome("read", named, text, call_id, "r1", unknown="read")
    return Outcome("read", named, digest(result), call_id, "r1")


def lines_per_step(mix: Mix, history: int, *, late: int) -> float:
    """Python lines executed in the product for one step, once the history is full."""
    settled = replace(EARLY, history_size=history)
    engine, state = Engine(Deployment("test")), RunState("r1", 0)
    lines = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal lines
        if "loopstream" not in frame.f_code.co_filename:
            return None
        lines += event == "line"
        return trace

    steps = enumerate(played(mix, late=late))
    for number, step in islice(steps, 2 * history + 100):
        _ = engine.step(state, event_of(step, number, latest=False), settled, at(number))
    assert len(state.history) == history
    todo = [(event_of(step, n, latest=False), at(n)) for n, step in islice(steps, 2 * MEASURED)]
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for event, place in todo:
            engine.step(state, event, settled, place)
    finally:
        sys.settrace(before)
    return lines / len(todo)


def at(number: int) -> Position:
    return Position(0, number, 0, number)


@pytest.mark.slow
@pytest.mark.parametrize("late", [0, 3])
@pytest.mark.parametrize("name", MIXES)
def test_a_step_costs_the_same_with_a_long_history(name: str, late: int) -> None:
    short = lines_per_step(MIXES[name], SHORT, late=late)
    long = lines_per_step(MIXES[name], LONG, late=late)
    assert long <= 1.2 * short, f"{long:.0f} lines a step against {short:.0f}"
