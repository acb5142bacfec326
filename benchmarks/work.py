"""The two works that all peers do, on the same input.

*Streak*: decode, keep the last 30 calls of a run durably, count equal ones in a row, emit a verdict
at each tenth. *Engine*: our whole engine, with the default settings switched on.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator
from typing import Any

import msgpack
import orjson

KEPT = 30
EVERY = 10

# -- streak --------------------------------------------------------------------------------


def streak_events(events: int, runs: int, seed: int = 7) -> Iterator[tuple[str, dict[str, Any]]]:
    """(run, tool call as it travels): runs by turns; a third of them repeat themselves a while."""
    draw = random.Random(seed)
    names = [f"run-{number:07}" for number in range(runs)]
    for number in range(events):
        run, turn = number % runs, number // runs
        repeats = run % 3 == 0 and turn % 25 < 22
        call = 0 if repeats else draw.getrandbits(32)
        event = _call(names[run], turn, call.to_bytes(8, "big") * 4)
        yield names[run], {**event, "id": f"{names[run]}-{turn}", "seq": turn}


def streak_record(events: list[dict[str, Any]]) -> bytes:
    """A frame of events; a single event is a frame of one."""
    return engine_record(events)


def streak_json(events: list[dict[str, Any]]) -> bytes:
    """A single event as JSON; digests in hexadecimal digits."""
    return engine_json(events[0])


def streak_decode(value: bytes) -> list[tuple[str, bytes]]:
    """(run, call) of a record in either form; a call is known by 8 bytes of its digest."""
    if value[:1] == b"{":
        return [streak_of(orjson.loads(value), bytes.fromhex)]
    return [
        (event["run"], event["fp"]["documented"]["args"][:8])
        for event in msgpack.unpackb(value)["events"]
    ]


def streak_of(event: dict[str, Any], read: Callable[[Any], bytes] = bytes) -> tuple[str, bytes]:
    """(run, call) of one event."""
    return event["run"], read(event["fp"]["documented"]["args"])[:8]


def streak_step(state: list[Any], call: bytes) -> int:
    """Fold one call into ``[streak, calls]``; the streak, if it is worth a verdict, else 0."""
    calls = state[1]
    state[0] = state[0] + 1 if calls and calls[-1] == call else 1
    calls.append(call)
    if len(calls) > KEPT:
        del calls[0]
    return state[0] if state[0] % EVERY == 0 else 0


def streak_new() -> list[Any]:
    """The state of a run that has done nothing yet."""
    return [0, []]


# -- engine --------------------------------------------------------------------------------


def engine_events(
    events: int, runs: int, *, stuck: bool = False
) -> Iterator[tuple[str, dict[str, Any]]]:
    """(run, event fields): calls and outcomes by turns; every tenth run loops for a while.

    ``stuck``: it never stops looping, and makes the calls that are blocked all the same.
    """
    turn = 0
    produced = 0
    while produced < events:
        for number in range(runs):
            run = f"run-{number:07}"
            loops = number % 10 == 0 and (stuck or turn % 40 < 24)
            call = _digest("loop" if loops else f"{run}/{turn}")
            result = _digest("same" if loops else f"{run}/{turn}/result")
            for step, event in enumerate(
                (_call(run, turn, call), _outcome(run, turn, call, result))
            ):
                seq = 2 * turn + step
                yield run, {**event, "id": f"{run}-{seq}", "seq": seq}
                produced += 1
                if produced == events:
                    return
        turn += 1


def _common(run: str, turn: int) -> dict[str, Any]:
    return {
        "v": 1,
        "run": run,
        "agent": "bench",
        "session": "bench",
        "runner": "bench",
        "epoch": 1,
        "time": 1_790_000_000_000 + turn * 1000,
        "tool": "exec",
        "call_id": f"call-{turn}",
    }


def _call(run: str, turn: int, call: bytes) -> dict[str, Any]:
    fp = {"v": 1, "documented": {"args": call, "poll": False}}
    return {**_common(run, turn), "type": "tool_call", "fp": fp}


def _outcome(run: str, turn: int, call: bytes, result: bytes) -> dict[str, Any]:
    fp = {"v": 1, "documented": {"args": call, "poll": False, "result": result}}
    return {**_common(run, turn), "type": "tool_outcome", "fp": fp}


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def engine_record(events: list[dict[str, Any]]) -> bytes:
    """A frame of events."""
    return bytes(msgpack.packb({"v": 1, "events": events}))


def engine_json(event: dict[str, Any]) -> bytes:
    """A single event as JSON; digests in hexadecimal digits."""
    return orjson.dumps(event, default=bytes.hex)
