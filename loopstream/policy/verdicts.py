"""From a decision to the published verdict: its id, its texts, its evidence."""

from __future__ import annotations

import hashlib
from collections.abc import Reversible
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

from loopstream.detect.base import DetectorName, Finding
from loopstream.detect.limits import Limits
from loopstream.events import Control, RunEvent, ToolCall, verdict
from loopstream.events.making import trusted
from loopstream.events.verdict import Action, Evidence, Level, Verdict
from loopstream.policy.deployment import Deployment, Mode
from loopstream.policy.orders import Order
from loopstream.state.run import RunState, Said, Standing, Target

_ORDERED: Final = frozenset((Action.RELEASE, Action.ABORT))
_ASKED: Final = frozenset((Action.WARN, Action.BLOCK, Action.ABORT))
_COUNTED: Final = 8
_LOOKED_AT: Final = 32
_MAX_KEY: Final = 4096
_MAX_EXCLUDED: Final = 1024


class Position(NamedTuple):
    """Where an event stands in the log; times in milliseconds."""

    partition: int
    offset: int
    place: int
    append_time: int


@dataclass(frozen=True, slots=True)
class Trigger:
    """What caused a decision: the event's id and times, and whose call it was."""

    id: str
    time: int
    position: Position
    call_id: str | None = None
    traceparent: str | None = None
    order: Order | None = None

    @classmethod
    def of(
        cls,
        event: RunEvent | Control,
        position: Position,
        order: Order | None = None,
        last_event: int = 0,
    ) -> Trigger:
        """An event without an id is named by its place, so replay names it alike.

        Args:
            last_event: time of the run's last event. A command has no time of its own on the
                runner's clock: its verdicts are of this time, or of its append time.
        """
        name = event.id or f"{position.partition}-{position.offset}-{position.place}"
        call_id = event.call_id if isinstance(event, ToolCall) else None
        traceparent = None if isinstance(event, Control) else event.traceparent
        time = event.time
        if isinstance(event, Control):
            time = last_event or position.append_time
        return cls(name, time, position, call_id, traceparent, order)


@dataclass(frozen=True, slots=True)
class Decision:
    """One thing to be said about a run, before it is published."""

    action: Action
    level: Level
    standing: Standing
    reason: str
    target: Target | None = None
    targets: tuple[Target, ...] = ()
    """Where a block covers more than one target; else ``target`` says it."""
    mode: Mode | None = None
    """Where it is not the deployment's."""
    instead_of: Action | None = None
    """What a detector that only warns would have asked for."""

    @classmethod
    def on(
        cls, action: Action, finding: Finding, reason: str, mode: Mode | None = None
    ) -> Decision:
        """A decision made of a finding."""
        held_back = None
        if finding.capped:
            guard = finding.detector is DetectorName.GUARD
            held_back = Action.ABORT if guard else Action.BLOCK
        return cls(
            action,
            finding.level,
            standing_of(finding),
            reason,
            finding.target,
            mode=mode,
            instead_of=held_back,
        )


def standing_of(finding: Finding) -> Standing:
    """What is remembered of a block or abort while it stands."""
    return Standing(
        finding.detector.value,
        finding.count,
        finding.threshold,
        finding.key,
        finding.tool,
        finding.paired_tool,
    )


def verdict_id(prefix: str, scope: str, trigger: str, decision: Decision) -> str:
    """32 hexadecimal digits; equal events give equal ids, live or replayed, in any framing.

    A JSON-free, length-prefixed text is hashed, so that no two different tuples collide.
    """
    standing = decision.standing
    framed = (
        _framed(prefix)
        + _framed(scope)
        + _framed(trigger)
        + _framed(standing.detector)
        + _framed(decision.action.value)
        + _framed(standing.key)
    )
    return hashlib.sha256(framed).hexdigest()[:32]


def _framed(part: str) -> bytes:
    data = part.encode("utf-8", "surrogatepass")
    return len(data).to_bytes(4, "big") + data


def publish(
    deployment: Deployment,
    state: RunState,
    limits: Limits,
    trigger: Trigger,
    decision: Decision,
) -> Verdict:
    """Number a decision within its run and make the verdict of it; changes ``state``."""
    state.verdict_seq += 1
    standing, position = decision.standing, trigger.position
    # A detector in shadow has no say in what is told of the run.
    aside = decision.mode == "shadow" and deployment.mode != "shadow"
    order = trigger.order if decision.action in _ORDERED else None
    # Nor has what comes after an abort while that stands: the abort is why the run ends.
    told = state.last_verdict
    ended = state.aborted is not None and told is not None and told.action == Action.ABORT
    aside = aside or (ended and order is None)
    if (decision.level is not Level.NONE or order is not None) and not aside:
        state.last_verdict = Said(
            decision.action.value,
            decision.level.value,
            standing.detector,
            standing.count,
            standing.tool,
            standing.paired_tool,
            trigger.time,
            None if order is None else decision.reason,
        )
    mode = decision.mode or deployment.mode
    state.totals.withheld += mode == "shadow" and decision.action in _ASKED
    target = decision.target
    targets = decision.targets or (() if target is None else (target,))
    return trusted(
        Verdict,
        v=1,
        type="verdict",
        id=verdict_id(deployment.prefix, state.scope, trigger.id, decision),
        seq=state.verdict_seq,
        scope=state.scope,
        run=state.run,
        agent=state.agent,
        session=state.session,
        runner=state.runner,
        action=decision.action,
        level=decision.level,
        detector=standing.detector,
        count=standing.count,
        threshold=standing.threshold,
        tool=standing.tool,
        call_id=trigger.call_id if decision.action is Action.ANSWER else None,
        applies_to=tuple(map(_wire_target, targets)),
        paired_tool=standing.paired_tool,
        key=standing.key[:_MAX_KEY],
        reason=decision.reason,
        evidence=trusted(
            Evidence,
            event=trigger.id,
            partition=position.partition,
            offset=position.offset,
            counted=_counted(state, targets),
            by=None if order is None else order.by,
            note=None if order is None else order.note,
            command=None if order is None else order.offset,
        ),
        mode=mode,
        instead_of=decision.instead_of,
        profile=deployment.profile,
        settings=limits.digest,
        event_time=trigger.time,
        append_time=position.append_time,
        traceparent=trigger.traceparent,
    )


def widened(verdict_: Verdict, target: Target | None) -> Verdict:
    """The verdict, covering ``target`` too."""
    covered = verdict_.applies_to
    if target is None or (named := _wire_target(target)) in covered:
        return verdict_
    return verdict_.model_copy(update={"applies_to": (*covered, named)})


def _wire_target(target: Target) -> verdict.Target:
    return trusted(
        verdict.Target,
        signature=target.signature,
        tool=target.tool,
        exclude=target.exclude[:_MAX_EXCLUDED],
    )


def _counted(state: RunState, targets: tuple[Target, ...]) -> tuple[int, ...]:
    """Offsets of the newest few records that the targets cover, oldest first."""
    if not targets:
        return ()
    named = {target.signature for target in targets}
    wide = [target for target in targets if target.signature is None]
    records: Reversible[Any] = (
        state.history.records if state.extended is None else state.extended.records
    )
    offsets: list[int] = []
    for record in islice(reversed(records), _LOOKED_AT):
        call = record.call
        if call.signature in named or (wide and _widely(state, wide, call)):
            offsets.append(record.offset)
            if len(offsets) == _COUNTED:
                break
    offsets.reverse()
    return tuple(offsets)


def _widely(state: RunState, wide: list[Target], call: Any) -> bool:
    tool: str = call.tool if state.extended is None else call.tool.name
    return any(target.covers(tool, call.signature) for target in wide)
