"""What runs do: (arguments, result) of the n-th call. The engine sees nothing else of a tool."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

from loopstream.events import ToolCall, ToolOutcome
from loopstream.events.tool import (
    CallDigests,
    CallFingerprint,
    OutcomeDigests,
    OutcomeFingerprint,
)

Mix = Callable[[int], tuple[str, str]]
Event = ToolCall | ToolOutcome

# Longer than any history measured, so that a call that comes again is a new one.
DISTINCT: Final = 4_000

MIXES: Final[dict[str, Mix]] = {
    "looping": lambda _: ("a", "same"),
    "healthy": lambda n: (str(n), f"result {n}"),
    "healthy, 7 calls": lambda n: (str(n % 7), f"result {n}"),
}


def prints(mix: Mix, calls: int, first: int = 0) -> Iterator[Event]:
    """Calls and their outcomes as a runner sends them: fingerprints, nothing else."""
    for number in range(first, first + calls):
        args, result = mix(number)
        yield _call(number, fp=CallFingerprint(documented=CallDigests(args=digest(args))))
        seen = OutcomeDigests(args=digest(args), result=digest(result))
        yield _outcome(number, fp=OutcomeFingerprint(documented=seen))


def refused(mix: Mix, calls: int) -> Iterator[Event]:
    """Calls that a runner has refused by itself, because a block stands: no outcomes."""
    for number in range(calls):
        fp = CallFingerprint(documented=CallDigests(args=digest(mix(number)[0])))
        yield _call(number, fp=fp, disposition="refused")


def raw(mix: Mix, calls: int) -> Iterator[Event]:
    """The same with raw values, which the worker hashes: some 100 bytes each."""
    for number in range(calls):
        args, result = mix(number)
        told = json.dumps({"path": f"src/app/{args}.py", "limit": 200, "encoding": "utf-8"})
        content = [{"type": "text", "text": f"line {result}"}]
        came = json.dumps({"content": content, "details": {"status": "completed"}})
        yield _call(number, args=told)
        yield _outcome(number, args=told, result=came)


@cache
def digest(text: str) -> bytes:
    """32 bytes, as of arguments or a result."""
    return hashlib.sha256(text.encode()).digest()


def _call(number: int, **fields: Any) -> ToolCall:
    return ToolCall(type="tool_call", **_common(number, 0), **fields)


def _outcome(number: int, **fields: Any) -> ToolOutcome:
    return ToolOutcome(type="tool_outcome", **_common(number, 1), **fields)


def _common(number: int, half: int) -> dict[str, Any]:
    return {
        "v": 1,
        "id": f"{2 * number + half:x}",
        "run": "run-1",
        "agent": "bench",
        "time": 1_790_000_000_000 + number,
        "tool": "read",
        "call_id": f"c{number}",
    }
