"""Invented traffic: runs as events on the wire."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from loopstream.events import Action, Evidence, Level, Verdict
from loopstream.fingerprint.calls import fingerprint_call
from loopstream.fingerprint.digests import call_digests, outcome_digests
from loopstream.fingerprint.outcomes import fingerprint_outcome

Fields = dict[str, Any]


class Teller:
    """Tells one run, event by event."""

    def __init__(self, run: str, agent: str = "tester", **common: Any) -> None:
        self._common = {"v": 1, "run": run, "agent": agent, "epoch": 1, **common}
        self._seq = 0

    def event(self, kind: str, **fields: Any) -> Fields:
        self._seq += 1
        made = {
            **self._common,
            "type": kind,
            "id": f"e{self._seq}",
            "seq": self._seq,
            "time": 1_000 * self._seq,
            **fields,
        }
        return {name: value for name, value in made.items() if value is not None}

    def call(self, tool: str, args: Any, **fields: Any) -> Fields:
        digests = call_digests(fingerprint_call(tool, args)).model_dump(exclude_defaults=True)
        fp = {"v": 1, "documented": digests}
        return self.event("tool_call", tool=tool, fp=fp, **fields)

    def outcome(self, tool: str, args: Any, result: Any, **fields: Any) -> Fields:
        seen = fingerprint_outcome(tool, args, result=result, profile="documented")
        digests = outcome_digests(seen).model_dump(exclude_none=True)
        fp = {"v": 1, "documented": digests}
        return self.event("tool_outcome", tool=tool, fp=fp, **fields)

    def turn(self, tool: str, args: Any, result: Any) -> Iterator[Fields]:
        yield self.call(tool, args)
        yield self.outcome(tool, args, result)


def looping(run: str, turns: int = 30, agent: str = "tester", **common: Any) -> list[Fields]:
    """The same call with the same result, after two that are work."""
    teller = Teller(run, agent, **common)
    events = [teller.event("run_started")]
    events += [*teller.turn("read", {"path": "a"}, "text a")]
    events += [*teller.turn("read", {"path": "b"}, "text b")]
    for _ in range(turns):
        events += teller.turn("exec", {"command": "make"}, "error 2")
    return [*events, teller.event("run_ended")]


def healthy(run: str, turns: int = 30, agent: str = "tester", **common: Any) -> list[Fields]:
    """Each call is another."""
    teller = Teller(run, agent, **common)
    events = [teller.event("run_started")]
    for turn in range(turns):
        events += teller.turn("read", {"path": f"{turn}.py"}, f"text {turn}")
    return [*events, teller.event("run_ended")]


def interleaved(runs: Sequence[Sequence[Fields]]) -> Iterator[Fields]:
    """The events of all runs in turns, as they would arrive."""
    for at in range(max(map(len, runs))):
        for run in runs:
            if at < len(run):
                yield run[at]


def verdict(run: str, number: int, **more: Any) -> Verdict:
    fields: dict[str, Any] = {
        "id": f"{number:032x}",
        "seq": number,
        "scope": run,
        "run": run,
        "agent": "tester",
        "action": Action.BLOCK,
        "level": Level.CRITICAL,
        "detector": "generic_repeat",
        "count": 20,
        "threshold": 20,
        "tool": "exec",
        "key": "generic:exec",
        "reason": "the same call 20 times",
        "evidence": Evidence(event=f"e{number}", partition=0, offset=number),
        "profile": "documented",
        "settings": "0123456789abcdef",
        "event_time": 1,
        "append_time": 2,
    }
    return Verdict(**(fields | more))
