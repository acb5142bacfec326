"""Public: play scenarios (re-created reports, with the verdict wanted) and hold the engine to them.

The form of a file is documented in docs/reference/scenarios.md. Scenarios that concern several
runs or agents are played too, each run by itself: what only a view over runs could see is missed.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from loopstream.detect.limits import Limits
from loopstream.engine import Engine
from loopstream.errors import DataError
from loopstream.events import (
    CallFingerprint,
    Compaction,
    OutcomeFingerprint,
    RunEvent,
    ToolCall,
    ToolOutcome,
    Verdict,
)
from loopstream.fingerprint.calls import fingerprint_call
from loopstream.fingerprint.canonical import MISSING
from loopstream.fingerprint.digests import call_digests, outcome_digests
from loopstream.fingerprint.extended.calls import extended_call
from loopstream.fingerprint.extended.outcomes import extended_outcome
from loopstream.fingerprint.outcomes import fingerprint_outcome
from loopstream.policy.deployment import Deployment, Profile
from loopstream.policy.extended_settings import resolve_for
from loopstream.policy.verdicts import Position
from loopstream.state.run import RunState

Level = Literal["none", "warn", "block", "abort"]
LEVELS: Final[tuple[Level, ...]] = ("none", "warn", "block", "abort")
Grade = Literal["as_wanted", "missed", "late", "false_stop", "false_warning"]
# A compaction after which the prompt is tried again: what arms the post-compaction guard.
RETRIED: Final = ("overflow", "timeout", "swallowed_answer")
MAX_EVENTS: Final = 1_000_000
_RANK: Final = {level: rank for rank, level in enumerate(LEVELS)}
_ACTIONS: Final[Mapping[str, Level]] = {"warn": "warn", "block": "block", "abort": "abort"}


@dataclass(frozen=True, slots=True)
class Heard:
    """A verdict of a higher level than any before, and the call (counted over all runs) by
    which it was given.
    """

    level: Level
    call: int
    detector: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one scenario."""

    id: str
    want: Level
    by_call: int | None
    limit: Level | None
    calls: int
    heard: tuple[Heard, ...]
    grade: Grade

    @property
    def got(self) -> Level:
        """The highest verdict."""
        return self.heard[-1].level if self.heard else "none"

    @property
    def at_call(self) -> int | None:
        """Where the wanted level was reached, else where the highest one was."""
        for heard in self.heard:
            if _RANK[heard.level] >= _RANK[self.want] > 0:
                return heard.call
        return self.heard[-1].call if self.heard else None

    @property
    def detector(self) -> str | None:
        """Which detector gave the highest verdict."""
        return self.heard[-1].detector if self.heard else None


@dataclass(slots=True)
class Report:
    """All scenarios of all files."""

    outcomes: list[Outcome] = field(default_factory=list)

    def count(self, grade: Grade) -> int:
        """Scenarios with a grade."""
        return sum(outcome.grade == grade for outcome in self.outcomes)

    @property
    def share(self) -> float:
        """Share of scenarios that came out as wanted."""
        return self.count("as_wanted") / len(self.outcomes) if self.outcomes else 1.0

    def closing_line(self) -> str:
        """The last line that ``loopstream scenarios`` prints."""
        return (
            f"scenarios={len(self.outcomes)} as_wanted={self.count('as_wanted')} "
            f"missed={self.count('missed')} false_stops={self.count('false_stop')} "
            f"false_warnings={self.count('false_warning')} late={self.count('late')}"
        )


# -- playing -------------------------------------------------------------------------------


class Player:
    """Plays flat events through the engine, one state a run, nothing ever refused.

    Args:
        profile: whose rules.
        block: a settings block; by default detection is simply on.
        session: all runs of a session are one run, as nothing else would be known of them.
    """

    def __init__(self, profile: Profile, block: Mapping[str, Any] | None = None) -> None:
        self.profile = profile
        self.calls = 0
        self.verdicts: list[tuple[int, Verdict]] = []
        self._engine = Engine(Deployment(prefix="scenarios", profile=profile))
        self._limits: Limits = resolve_for(profile, {"enabled": True, **(block or {})})
        self._runs: dict[str, RunState] = {}
        self._events = 0
        self._time = 0

    def play(self, event: Mapping[str, Any]) -> list[Verdict]:
        """One event; returns what the engine says."""
        made = self.made(event)
        run = str(event.get("run") or "")
        state = self._runs.get(run)
        if state is None:
            state = self._runs[run] = RunState(run or "\0", 0)
            state.run = run or None
        at = Position(0, self._events, 0, self._time)
        said = self._engine.step(state, made, self._limits, at).verdicts
        self.verdicts += [(self.calls, verdict) for verdict in said]
        return said

    def made(self, event: Mapping[str, Any]) -> RunEvent:
        """The event as it would stand in the log; time moves on."""
        self._events += 1
        self._time += round(float(event.get("dt", 1)) * 1000) if event["op"] == "call" else 0
        return self._made(event)

    def state(self, run: str) -> RunState:
        """The state of a run that was played."""
        return self._runs[run]

    def _made(self, event: Mapping[str, Any]) -> RunEvent:
        base = {
            "v": 1,
            "id": f"e{self._events}",
            "run": event.get("run"),
            "time": self._time,
            "batch": event.get("batch"),
        }
        if event["op"] == "compaction":
            return _compaction(base, event)
        base |= {"tool": event["tool"], "call_id": event.get("call_id")}
        if event["op"] == "call":
            self.calls += 1
            return self._call(base, event)
        return self._outcome(base, event)

    def _call(self, base: dict[str, Any], event: Mapping[str, Any]) -> ToolCall:
        tool, args = event["tool"], event.get("args", MISSING)
        if self.profile == "extended":
            fp = CallFingerprint(extended=extended_call(tool, args))
        else:
            digests = call_digests(fingerprint_call(tool, args))
            fp = CallFingerprint(documented=digests, reference=digests)
        return ToolCall.model_construct(**base, type="tool_call", disposition="executed", fp=fp)

    def _outcome(self, base: dict[str, Any], event: Mapping[str, Any]) -> ToolOutcome:
        tool, args = event["tool"], event.get("args", MISSING)
        result, error = event.get("result", MISSING), event.get("error", MISSING)
        if self.profile == "extended":
            extended = extended_outcome(tool, args, result=result, error=error)
            fp = OutcomeFingerprint(extended=extended)
        else:
            seen = fingerprint_outcome(tool, args, result=result, error=error, profile=self.profile)
            digests = outcome_digests(seen)
            fp = OutcomeFingerprint(documented=digests, reference=digests)
        return ToolOutcome.model_construct(**base, type="tool_outcome", executed=True, fp=fp)


def _compaction(base: dict[str, Any], event: Mapping[str, Any]) -> Compaction:
    return Compaction.model_construct(
        **base,
        type="compaction",
        succeeded=event.get("succeeded", True),
        retried=event.get("retried", event.get("reason") in RETRIED),
        reason=event.get("reason"),
        tokens_before=event.get("tokens_before"),
        tokens_after=event.get("tokens_after"),
    )


def rising(verdicts: Iterable[tuple[int, Verdict]]) -> tuple[Heard, ...]:
    """The verdicts that went higher than all before them; shadowed ones don't count."""
    heard: list[Heard] = []
    for call, verdict in verdicts:
        level = _ACTIONS.get(verdict.action.value, "none")
        if verdict.mode != "shadow" and _RANK[level] > (_RANK[heard[-1].level] if heard else 0):
            heard.append(Heard(level, call, verdict.detector))
    return tuple(heard)


# -- checking ------------------------------------------------------------------------------


def check_files(paths: Iterable[Path], profile: Profile = "documented") -> Report:
    """Play every scenario of every file.

    Raises:
        DataError: a file can't be read or a line is no scenario; ``where`` is file and line.
    """
    report = Report()
    for path in paths:
        for number, line in _lines(path):
            where = f"{path}:{number}"
            try:
                report.outcomes.append(check(json.loads(line), profile))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                raise DataError(
                    f"not a scenario: {type(error).__name__} {error}.",
                    where=where,
                    hint="See the form in docs/reference/scenarios.md.",
                ) from error
    return report


def check(scenario: Mapping[str, Any], profile: Profile = "documented") -> Outcome:
    """Play one scenario and grade what it came to.

    Raises:
        ValueError, KeyError, TypeError: it is no scenario.
    """
    want: Level = _level(scenario["want"])
    limit = _level(scenario["max"]) if "max" in scenario else ("none" if want == "none" else None)
    player = Player(profile, scenario.get("config"))
    for event in expand(scenario["events"]):
        player.play(event)
    heard = rising(player.verdicts)
    by_call = scenario.get("by_call")
    grade = _grade(heard, want, by_call, limit)
    return Outcome(str(scenario["id"]), want, by_call, limit, player.calls, heard, grade)


def _grade(
    heard: tuple[Heard, ...], want: Level, by_call: int | None, limit: Level | None
) -> Grade:
    got = _RANK[heard[-1].level] if heard else 0
    if limit is not None and got > _RANK[limit]:
        return "false_stop" if got >= _RANK["block"] else "false_warning"
    if want == "none":
        return "as_wanted"
    reached = next((h.call for h in heard if _RANK[h.level] >= _RANK[want]), None)
    if reached is None:
        return "missed"
    return "late" if by_call is not None and reached > by_call else "as_wanted"


def _level(text: object) -> Level:
    for level in LEVELS:
        if level == text:
            return level
    raise ValueError(f"{text!r} is none of {', '.join(LEVELS)}")


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8") as lines:
            yield from ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataError(
            f"can't be read: {error}.", where=str(path), hint="Give .jsonl or .jsonl.gz files."
        ) from error


# -- the compact form ----------------------------------------------------------------------

_PLACE: Final = re.compile(r"\{i(?::(\w+)|(?:\*(\d+))?(?:\+(\d+)|-(\d+))?)\}")
_MAX_DEPTH: Final = 8


def expand(events: list[Any], depth: int = 0) -> Iterator[dict[str, Any]]:
    """Flat events of a compact list: ``repeat`` blocks unrolled, ``{i}`` places filled in.

    Raises:
        ValueError: it is too deep, or unrolls to more than a million events.
    """
    if depth > _MAX_DEPTH:
        raise ValueError("repeats are nested too deeply")
    left = MAX_EVENTS
    for event in events:
        for flat in _unrolled(event, depth) if "repeat" in event else (event,):
            left -= 1
            if left < 0:
                raise ValueError(f"more than {MAX_EVENTS} events")
            yield flat


def _unrolled(block: dict[str, Any], depth: int) -> Iterator[dict[str, Any]]:
    variables = block.get("vars", {})
    for lap in range(1, int(block["repeat"]) + 1):
        # The places of an inner repeat are its own.
        steps = [s if "repeat" in s else _filled(s, lap, variables) for s in block["steps"]]
        yield from expand(steps, depth + 1)


def _filled(value: Any, lap: int, variables: Mapping[str, list[Any]]) -> Any:
    if isinstance(value, dict):
        return {
            str(_filled(name, lap, variables)): _filled(inner, lap, variables)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_filled(item, lap, variables) for item in value]
    if not isinstance(value, str):
        return value
    whole = _PLACE.fullmatch(value)
    if whole is not None:
        return _place(whole, lap, variables)
    return _PLACE.sub(lambda match: str(_place(match, lap, variables)), value)


def _place(match: re.Match[str], lap: int, variables: Mapping[str, list[Any]]) -> Any:
    name, factor, plus, minus = match.groups()
    if name:
        values = variables[name]
        return values[(lap - 1) % len(values)]
    return lap * int(factor or 1) + int(plus or 0) - int(minus or 0)
