"""Loops made of real runs: a real prefix, then its last k calls again and again."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

Event = dict[str, Any]
PERIODS: Final = range(1, 9)
LAPS: Final = 12


class Spliced(NamedTuple):
    """A run with a loop in it; ``start`` is the number of calls before the first repeated lap."""

    name: str
    period: int
    volatile: bool
    start: int
    events: list[Event]


def splices(runs: list[dict[str, Any]], laps: int = LAPS) -> Iterator[Spliced]:
    """Each run with each period that it is long enough for, with and without volatile tokens."""
    for run in runs:
        pairs = _pairs(run["events"])
        for period in PERIODS:
            if len(pairs) < period:
                continue
            for volatile in (False, True):
                events = [event for pair in pairs for event in pair]
                for lap in range(laps):
                    for call, outcome in pairs[-period:]:
                        again = [copy.deepcopy(call), copy.deepcopy(outcome)]
                        if volatile:
                            for event in again:
                                _spoil(event, f"{run['run']}:{period}:{lap}")
                        events += again
                yield Spliced(run["run"], period, volatile, len(pairs), events)


def _pairs(events: list[Event]) -> list[tuple[Event, Event]]:
    """Calls with their outcomes, in order of the calls."""
    pairs: list[tuple[Event, Event]] = []
    waiting: list[Event] = []
    for event in events:
        if event["op"] == "call":
            waiting.append(event)
            continue
        for call in waiting:
            same = call.get("call_id") == event.get("call_id")
            if same and call["tool"] == event["tool"] and call.get("args") == event.get("args"):
                pairs.append((call, event))
                waiting.remove(call)
                break
    return pairs


def _spoil(event: Event, seed: str) -> None:
    """Put tokens into arguments and result that mean nothing."""
    event.pop("call_id", None)
    args = event.get("args")
    # Call and outcome of one lap carry the same arguments.
    noise = _noise(seed)
    if isinstance(args, dict):
        texts = [key for key, value in args.items() if isinstance(value, str) and " " in value]
        if texts:
            args[texts[0]] = f"{args[texts[0]]} # {noise}"
        else:
            args["request_id"] = noise.split()[-1]
    for name in ("result", "error"):
        if isinstance(event.get(name), str):
            event[name] = f"{event[name]}\n[{_noise(seed + name)}]"


def _noise(seed: str) -> str:
    digest = hashlib.sha256(seed.encode()).hexdigest()
    number = int(digest[:8], 16)
    clock = f"2026-11-{number % 28 + 1:02d}T{number % 24:02d}:{number % 60:02d}:{number % 59:02d}Z"
    uuid = f"{digest[:8]}-{digest[8:12]}-4{digest[12:15]}-8{digest[15:18]}-{digest[18:30]}"
    return f"{clock} attempt {number % 90 + 1} took {number % 900}ms pid {number % 30000} {uuid}"
