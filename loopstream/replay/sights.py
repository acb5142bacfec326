"""What each detector saw in a call: its count against its threshold, also when it was silent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from loopstream.detect.base import Detector, Finding, Probe
from loopstream.detect.judge import mute_of
from loopstream.detect.limits import Limits
from loopstream.detect.profiles import Profile
from loopstream.detect.rollout import Mode
from loopstream.events.verdict import Level
from loopstream.state.run import RunState

# Thresholds that everything reaches, each a number of its own: a finding tells by which it came.
_MARKS: Final = {"warning": -1, "critical": -2, "breaker": -3, "unknown_tool": -4}
_NEVER: Final = 1 << 60
_SILENT: Final = ("off", "shadow")


@dataclass(frozen=True, slots=True)
class Sight:
    """One detector's view of one call.

    ``counts`` are (level, count, threshold) of what it measured. ``speaks``: what it has to say
    under the settings in force; ``muted``: an operator released what it would say (``mute`` is
    what is remembered of that); ``mode``: how far it is acted on. Of profile ``extended``:
    ``levels`` by name, what the count is ``keyed_on``, and how far its alarm has gone.
    """

    detector: str
    counts: tuple[tuple[str, int, int], ...]
    speaks: str | None
    muted: bool = False
    mode: Mode = "enforce"
    mute: bytes | None = None
    levels: Mapping[str, int] | None = None
    keyed_on: str | None = None
    escalation: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """JSON-like."""
        counts = [{"level": lv, "count": n, "threshold": t} for lv, n, t in self.counts]
        fields: dict[str, Any] = {
            "detector": self.detector,
            "counts": counts,
            "speaks": self.speaks,
            "muted": self.muted,
            "mode": self.mode,
        }
        more = {
            "levels": None if self.levels is None else dict(self.levels),
            "keyed_on": self.keyed_on,
            "escalation": self.escalation or None,
        }
        return fields | {name: value for name, value in more.items() if value is not None}


def sights(
    profile: Profile, state: RunState, limits: Limits, tool: str, signature: str, *, poll: bool
) -> list[Sight]:
    """Ask each detector of a profile, in its order, before the call enters the history."""
    return [
        _sight(detector, profile, state, limits, tool, signature, poll)
        for detector in profile.detectors
    ]


def _sight(
    detector: Detector,
    profile: Profile,
    state: RunState,
    limits: Limits,
    tool: str,
    signature: str,
    poll: bool,
) -> Sight:
    history = state.history
    stuck = profile.stuck(history, tool, signature)
    call = history.calls.get(signature)

    def ask(under: Limits) -> Finding | None:
        return detector.find(
            Probe(tool, signature, poll, history, under, call, stuck.times, stuck.outcome)
        )

    finding = ask(limits)
    mute = None if finding is None else mute_of(finding.subject)
    muted = mute in state.mutes
    counts = []
    reached: dict[str, Any] = dict(_MARKS)
    for under in (replace(limits, **reached), replace(limits, **(reached | {"critical": _NEVER}))):
        seen = ask(under)
        if seen is not None and seen.count > 0:
            reading = (seen.level.value, seen.count, _threshold(seen, limits))
            if reading not in counts:
                counts.append(reading)
    speaks = None if finding is None else finding.level.value
    rollout = limits.rollout
    mode = "enforce" if rollout is None else rollout.mode_of(detector.name)
    return Sight(detector.name.value, tuple(counts), speaks, muted, mode, mute if muted else None)


def _threshold(finding: Finding, limits: Limits) -> int:
    for name, mark in _MARKS.items():
        if finding.threshold == mark:
            return int(getattr(limits, name))
    return finding.threshold


def why(found: list[Sight], winner: Finding | None, *, enabled: bool) -> str:
    """Why the winning finding won, or why nobody spoke."""
    if not enabled:
        return "detection is off for this agent"
    if winner is None:
        if any(sight.muted for sight in found):
            return "an operator released it: muted until its result changes"
        if silent := [s.detector for s in found if s.speaks and s.mode in _SILENT]:
            return f"only what is off or in shadow has something to say: {', '.join(silent)}"
        return "no detector has reached its threshold"
    order = [s for s in found if s.speaks and not s.muted and s.mode not in _SILENT]
    behind = [f"{s.detector} ({s.speaks})" for s in order if s.detector != winner.detector.value]
    text = f"{winner.detector.value} is the first in order that speaks"
    if order and order[0].detector != winner.detector.value:
        text = f"{winner.detector.value} refuses, where {order[0].detector} may only warn"
    elif winner.capped:
        text += ", and may only warn"
    if winner.level is Level.WARNING and any("critical" in b for b in behind):
        return f"{text}; it hides {', '.join(behind)}"
    return f"{text}; behind it: {', '.join(behind)}" if behind else f"{text}, and the only one"
