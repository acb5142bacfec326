"""Many live runs in one partition: rows that are there before, and events by turns or in bursts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Final

from benchmarks.stepping.mixes import MIXES, prints
from loopstream.engine import Engine
from loopstream.events import ToolCall, ToolOutcome
from loopstream.policy.deployment import Deployment
from loopstream.policy.settings import resolve
from loopstream.policy.verdicts import Position
from loopstream.runtime.rows import MemoryRows
from loopstream.state.pack import pack
from loopstream.state.run import RunState
from loopstream.wire.codec import event_fields

CALLS: Final = 30
BURST: Final = 20
BUSY: Final = 1_000


def row_of(mix: str, calls: int = CALLS) -> bytes:
    """The row of a run that has made so many calls of a mix."""
    engine, state, limits = (
        Engine(Deployment("bench")),
        RunState("run-1", 0),
        resolve({"enabled": True}),
    )
    for offset, event in enumerate(prints(MIXES[mix], calls)):
        engine.step(state, event, limits, Position(0, offset, 0, event.time))
        state.offset, state.appended = offset, event.time
    state.run, state.agent, state.key_id = "run-1", "bench", ""
    return pack(state)


def stored(runs: int) -> MemoryRows:
    """A row of 30 different calls for each run; each has bytes of its own, as in a worker."""
    row, rows = row_of("healthy"), MemoryRows()
    for number in range(runs):
        rows.put(b"run-%07d" % number, bytes(bytearray(row)))
    return rows


def in_turn(runs: int) -> Iterator[int]:
    """Each event is the next run's, over and over: no run is seen again soon."""
    while True:
        yield from range(runs)


def in_bursts(runs: int) -> Iterator[int]:
    """20 events of a run while 1,000 runs are busy, then another 1,000 of all."""
    draw = random.Random(7)
    while True:
        busy = [draw.randrange(runs) for _ in range(min(BUSY, runs))]
        for _ in range(BURST):
            yield from busy


def templates(count: int) -> list[dict[str, Any]]:
    """Fields of events as they travel, without run and id."""
    made: list[ToolCall | ToolOutcome] = list(prints(MIXES["healthy"], count, 10_000))
    fields = [event_fields(event) for event in made]
    for each in fields:
        del each["id"]
    return fields
