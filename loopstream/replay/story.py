"""A run told event by event: groups, streaks, what detectors saw, what was said, what came of it.

An entry is JSON-like; ``docs/how-to/replay-an-incident.md`` describes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from loopstream.detect.extended.limits import ExtendedLimits
from loopstream.detect.limits import Limits
from loopstream.engine import Engine, OrderedStep, Step
from loopstream.events import (
    CallDigests,
    Compaction,
    EventsLost,
    RunEnded,
    RunEvent,
    RunStarted,
    ToolCall,
    ToolOutcome,
    Verdict,
)
from loopstream.events.text import short_name
from loopstream.events.tool import ExtendedCall, ExtendedOutcome
from loopstream.events.verdict import Action
from loopstream.fingerprint.calls import signature as signature_of
from loopstream.policy.deployment import Deployment
from loopstream.policy.verdicts import Position
from loopstream.replay.alarms import alarms, why_alarmed
from loopstream.replay.origins import Origins
from loopstream.replay.sights import Sight, sights, why
from loopstream.state.run import RunState

Entry = dict[str, Any]
_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_MUTED: Final = "not judged again while its result stays the same"
_DEFAULTS: Final = ExtendedLimits()
_ASKS: Final = frozenset((Action.WARN, Action.BLOCK, Action.ABORT))


class Story:
    """Watches one run (`watch.Watcher`) and tells each of its events.

    Args:
        tell: takes the entries as they come.
        origins: where the settings in force come from.
    """

    def __init__(
        self,
        deployment: Deployment,
        scope: str,
        origins: Origins,
        tell: Callable[[Entry], None],
    ) -> None:
        self._engine = Engine(deployment)
        # Profile `extended` keeps alarms, raised by what came back: it is asked after each event.
        self._profile = None if deployment.profile == "extended" else self._engine.profile
        self._released: dict[bytes, str] = {}
        self._scope = scope
        self._origins = origins
        self._tell = tell
        self._groups: dict[str, str] = {}
        self._results: dict[str, dict[str, int]] = {}
        self._settings = ""
        self._number = 0
        self._entry: Entry = {}
        self._asked: Verdict | None = None
        self._asked_at = 0
        self._asked_group = ""

    def before(self, state: RunState, event: RunEvent, limits: Limits, at: Position) -> None:
        """Look at what the detectors see before the event enters the history."""
        if state.scope != self._scope:
            return
        self._number += 1
        entry: Entry = {
            "n": self._number,
            "seq": event.seq if event.seq is not None else self._number,
            "kind": event.type,
            "time": event.time,
            "append_time": at.append_time,
            "partition": at.partition,
            "offset": at.offset,
        }
        self._entry = entry
        if limits.digest != self._settings:
            self._settings = limits.digest
            entry["settings"] = self._origins.describe(state.agent or event.agent, limits)
        if isinstance(event, ToolCall):
            self._call(entry, state, event, limits)
        elif isinstance(event, ToolOutcome):
            self._outcome(entry, event)
        else:
            entry["detail"] = _detail(event)
        self._reaction(entry, event)

    def after(self, state: RunState, event: RunEvent, step: Step, at: Position) -> None:
        """Add what the event came to, and tell it."""
        if state.scope != self._scope:
            return
        entry = self._entry
        signature = entry.pop("signature", None)
        seen = entry.pop("seen", None)
        if self._profile is None and isinstance(event, ToolCall | ToolOutcome | Compaction):
            tool = short_name(event.tool) if not isinstance(event, Compaction) else ""
            seen = alarms(state, step.limits.extended or _DEFAULTS, tool, signature or "")
        if signature is not None:
            entry |= _counts(state, signature)
        if seen is not None:
            entry["saw"] = [sight.as_dict() for sight in seen]
            entry["why"] = self._why(seen, step)
            entry |= self._muted(seen)
        if isinstance(event, ToolCall):
            entry["judged"] = _judged(step)
            entry["announced"] = step.announced
        self._say(entry, step)
        self._tell(entry)

    def commanded(self, step: Step, what: str, reason: str) -> None:
        """An operator's word, between two events of the run."""
        if step.state.scope != self._scope:
            return
        self._number += 1
        entry: Entry = {"n": self._number, "seq": None, "kind": f"operator_{what}"}
        trigger = step.trigger
        entry |= {"time": trigger.time, "append_time": trigger.position.append_time}
        entry |= {"partition": trigger.position.partition, "offset": trigger.position.offset}
        entry["detail"] = reason
        fresh = [mute for mute in step.state.mutes if mute not in self._released]
        if what == "release" and fresh:
            entry["muted"] = _MUTED
        self._released |= dict.fromkeys(fresh, _by(step))
        self._say(entry, step)
        self._tell(entry)

    def _say(self, entry: Entry, step: Step) -> None:
        entry["verdicts"] = [_told(verdict) for verdict in step.verdicts]
        for verdict in step.verdicts:
            if verdict.action in _ASKS or verdict.level.value != "none":
                self._asked, self._asked_at = verdict, entry["n"]
                self._asked_group = entry.get("group", "")

    def _call(self, entry: Entry, state: RunState, event: ToolCall, limits: Limits) -> None:
        digests = self._engine.digests(event)
        if digests is None:
            raise ValueError("a call without this profile's digests")
        tool = short_name(event.tool)
        signature = signature_of(tool, _told_apart(digests))
        seen: list[Sight] = []
        if self._profile is not None:
            seen = sights(self._profile, state, limits, tool, signature, poll=digests.poll)
        entry |= {
            "tool": event.tool,
            "group": self._group(signature),
            "signature": signature,
            "disposition": event.disposition,
            "call_id": event.call_id,
            "preview": event.preview if event.preview is not None else event.args,
            "seen": seen,
        }

    def _why(self, seen: list[Sight], step: Step) -> str:
        if self._profile is not None:
            return why(seen, step.judgement, enabled=step.limits.enabled)
        return why_alarmed(seen, step.covering, enabled=step.limits.enabled)

    def _muted(self, seen: list[Sight]) -> dict[str, str]:
        """Who let go what a detector would speak of."""
        by = [self._released.get(s.mute, "by an operator") for s in seen if s.mute is not None]
        return {"muted": f"released {by[0]}: {_MUTED}"} if by else {}

    def _outcome(self, entry: Entry, event: ToolOutcome) -> None:
        digests = self._engine.digests(event)
        if digests is None:
            raise ValueError("an outcome without this profile's digests")
        signature = signature_of(short_name(event.tool), _told_apart(digests))
        group = self._group(signature)
        result = None
        if digests.result is not None:
            known = self._results.setdefault(group, {})
            number = known.setdefault(digests.result.hex(), len(known) + 1)
            result = f"{group}{number}"
        entry |= {
            "tool": event.tool,
            "group": group,
            "signature": signature,
            "result": result,
            "failed": digests.failed,
            "executed": event.executed,
            "unknown_tool": digests.unknown_tool,
            "call_id": event.call_id,
            "preview": event.preview if event.preview is not None else event.error or event.result,
        }

    def _group(self, signature: str) -> str:
        return self._groups.setdefault(signature, _letters(len(self._groups)))

    def _reaction(self, entry: Entry, event: RunEvent) -> None:
        """What the runner did after the last thing it was told."""
        if self._asked is None:
            return
        if isinstance(event, ToolCall):
            same = entry["group"] == self._asked_group
            what = f"{'the same call' if same else 'another call'} ({event.disposition})"
        elif isinstance(event, RunEnded):
            what = f"ended the run ({event.status})"
        else:
            return
        entry["after"] = f"after the {self._asked.action.value} of #{self._asked_at}: {what}"
        self._asked = None


def _counts(state: RunState, signature: str) -> Entry:
    """How often a call came, and how often in a row to the same result."""
    if state.extended is not None:
        book = state.extended
        one = book.calls.get(signature)
        return {
            "records": 0 if one is None else one.records,
            "streak": 0 if one is None else one.count,
            "alternation": 0,
            "unknown_streak": book.unknown,
        }
    history = state.history
    call = history.calls.get(signature)
    return {
        "records": 0 if call is None else call.records,
        "streak": 0 if call is None else call.streak,
        "alternation": history.tail,
        "unknown_streak": history.unknown_streak(),
    }


def _by(step: Step) -> str:
    who = step.order.by if isinstance(step, OrderedStep) else None
    return f"by {who or 'an operator'}"


def _judged(step: Step) -> str | None:
    if step.covering is not None:
        return "critical"
    return None if step.judgement is None else step.judgement.level.value


def _told_apart(digests: CallDigests | ExtendedCall | ExtendedOutcome) -> bytes:
    """The digest by which calls are equal."""
    if isinstance(digests, CallDigests):
        return digests.args
    return digests.args if digests.masked is None else digests.masked


def _letters(number: int) -> str:
    text = ""
    while True:
        number, digit = divmod(number, 26)
        text = _ALPHABET[digit] + text
        if not number:
            return text
        number -= 1


def _detail(event: RunEvent) -> str:
    if isinstance(event, Compaction):
        words = ["succeeded" if event.succeeded else "failed"]
        words += ["retried"] if event.retried else []
        return ", ".join(words)
    if isinstance(event, RunStarted):
        return "taken up again" if event.resumed else "begun"
    if isinstance(event, RunEnded):
        return event.status
    return f"{event.count} events lost" if isinstance(event, EventsLost) else ""


def _told(verdict: Verdict) -> dict[str, Any]:
    return {
        "id": verdict.id,
        "seq": verdict.seq,
        "action": verdict.action.value,
        "level": verdict.level.value,
        "detector": verdict.detector,
        "count": verdict.count,
        "threshold": verdict.threshold,
        "tool": verdict.tool,
        "paired_tool": verdict.paired_tool,
        "reason": verdict.reason,
        "mode": verdict.mode,
        "by": verdict.evidence.by,
        "note": verdict.evidence.note,
        "instead_of": None if verdict.instead_of is None else verdict.instead_of.value,
    }
