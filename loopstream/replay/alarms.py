"""What the detectors of profile ``extended`` see of an event: counts, levels, alarms that stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from loopstream.detect.extended.base import LEVELS, About, Severity
from loopstream.detect.extended.limits import Armed, ExtendedLimits
from loopstream.detect.extended.watch import thing_of
from loopstream.detect.judge import mute_of
from loopstream.replay.sights import Sight
from loopstream.state.extended.book import Book, recipient_key
from loopstream.state.extended.tallies import Alarm, Call
from loopstream.state.run import RunState, Standing

_LEVELS: Final = {Severity.WARN: "warning", Severity.BLOCK: "critical", Severity.ABORT: "abort"}


def alarms(state: RunState, limits: ExtendedLimits, tool: str, signature: str) -> list[Sight]:
    """Ask each detector about what an event touched, after it was folded.

    Args:
        tool: the event's; blank: it is about no tool.
        signature: the call's.
    """
    book = state.extended
    if book is None:
        return []
    call = book.calls.get(signature)
    names = {About.TOOL: tool, About.RUN: ""}
    if call is not None:
        names[About.CALL] = signature
        if call.server is not None:
            names[About.SERVER] = f"{call.server:x}"
        if call.effect == "send":
            names[About.RECIPIENT] = f"{recipient_key(call):x}"
    rules = limits.rules(tool)
    seen = (_sight(state, book, armed, names, call) for about in names for armed in rules[about])
    return [sight for sight in seen if sight is not None]


def _sight(
    state: RunState, book: Book, armed: Armed, names: dict[About, str], call: Call | None
) -> Sight | None:
    detector = armed.detector
    name = names[detector.about]
    thing = thing_of(book, detector.about, name)
    if thing is None:
        return None
    alarm = book.alarms.get((detector.name, int(detector.about), name))
    weight = detector.weigh(book, thing, armed.params)
    levels = {level: value for level in LEVELS if (value := getattr(armed.params, level))}
    keyed = _keyed(detector.about, name, call)
    common: dict[str, Any] = {"mode": armed.mode, "levels": levels, "keyed_on": keyed}
    if alarm is not None:
        count, level = (alarm.count, alarm.threshold), _LEVELS[Severity(alarm.level)]
        return Sight(
            detector.name, ((level, *count),), level, **common, escalation=_escalation(alarm)
        )
    if weight is not None:
        subject = mute_of(detector.aim(book, thing).subject)
        muted = subject in state.mutes
        level = _LEVELS[weight.severity]
        counts = ((level, weight.times, weight.threshold),)
        return Sight(detector.name, counts, level, muted, **common, mute=subject if muted else None)
    return Sight(detector.name, _below(book, armed, thing), None, **common)


def _below(book: Book, armed: Armed, thing: Any) -> tuple[tuple[str, int, int], ...]:
    """The count of a detector that is silent yet, against its first level.

    Asked with a level of one, it tells its count; the threshold it names then is the factor by
    which it has more patience with this thing.
    """
    params = armed.params
    lowest = next((level for level in LEVELS if getattr(params, level)), None)
    if lowest is None:
        return ()
    seen = armed.detector.weigh(book, thing, replace(params, warn=1, block=0, abort=0))
    threshold = 0 if seen is None else getattr(params, lowest) * seen.threshold
    if seen is None or seen.times >= threshold:
        return ()
    return ((_LEVELS[Severity(LEVELS.index(lowest) + 1)], seen.times, threshold),)


def _keyed(about: About, name: str, call: Call | None) -> str:
    """What a detector counts by, for people."""
    if about is About.CALL and call is not None:
        return f"this call of {call.tool.name}"
    if about is About.TOOL:
        return f"tool {name}"
    if about is About.RUN:
        return "the run"
    what = "server" if about is About.SERVER else "recipient"
    return f"{what} {name[:8]}"


def _escalation(alarm: Alarm) -> str:
    """How far an alarm has gone, and from where."""
    words = [f"warned at {alarm.heard}"] if alarm.heard else []
    if alarm.level > Severity.WARN:
        words.append("aborts" if alarm.level == Severity.ABORT else "blocks")
    return f"{', '.join(words)}{' (shadow)' if alarm.shadow else ''}"


def why_alarmed(seen: Sequence[Sight], covering: Standing | None, *, enabled: bool) -> str:
    """Why a call was refused, or which alarms stand after an event, or why none does."""
    if not enabled:
        return "detection is off for this agent"
    if covering is not None:
        count = f"{covering.count} of {covering.threshold}"
        return f"the block of {covering.detector} ({count}) covers it"
    standing = [sight for sight in seen if sight.escalation is not None]
    if standing:
        texts = (f"{sight.detector} by {sight.keyed_on}" for sight in standing)
        return f"alarms stand: {', '.join(texts)}"
    if any(sight.muted for sight in seen):
        return "an operator released it: muted until its result changes"
    return "no alarm stands"
