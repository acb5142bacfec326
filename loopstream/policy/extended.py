"""Profile ``extended``: one event of a run in, what is to be said about it out.

A call is refused exactly if a standing block covers it, and the standing blocks follow from the
alarms of the record before: so the forecast is the judgement. Pure, as the engine is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, Protocol

from loopstream.detect.base import DetectorName
from loopstream.detect.extended.base import About, Severity
from loopstream.detect.extended.budget import SLOTS, BudgetParams
from loopstream.detect.extended.limits import ExtendedLimits
from loopstream.detect.extended.watch import Change, Watch
from loopstream.detect.limits import Limits
from loopstream.events import Action, Compaction, Level, RunEvent, ToolCall, ToolOutcome
from loopstream.events.text import short_name
from loopstream.events.tool import ExtendedCall
from loopstream.fingerprint.calls import signature as signature_of
from loopstream.policy.deployment import Deployment, Mode
from loopstream.policy.reasons import shown
from loopstream.policy.throttle import announce
from loopstream.policy.verdicts import Decision, Position
from loopstream.state.extended.book import MESSAGE_TOOL, Book, batch_of
from loopstream.state.extended.tallies import Alarm, Record
from loopstream.state.guard import Observation
from loopstream.state.run import RunState, Standing, Target

# A name this short can't be over 128 bytes.
_SURELY_SHORT: Final = 32
_CLOCK_SKEW_MS: Final = 300_000
_SHOWN_PAIRED: Final = 240
_LIFTED: Final = "What was refused may be tried again: the run has got somewhere."
_DEFAULTS: Final = ExtendedLimits()


class StepLike(Protocol):
    """What is written of a step (`engine.Step`)."""

    state: RunState
    limits: Limits
    guard: Observation
    recorded: bool
    announced: bool
    covering: Standing | None


class Say(Protocol):
    """Publishes a decision as part of a step."""

    def __call__(self, step: Any, decision: Decision) -> None:
        """Say it."""
        ...


class ExtendedFold:
    """The rules of a deployment with profile ``extended``."""

    def __init__(self, deployment: Deployment, say: Say) -> None:
        self._say = say
        self._announce = deployment.announce
        self._shadow = deployment.mode == "shadow"

    # -- events ----------------------------------------------------------------------------

    def call(self, step: StepLike, event: ToolCall, at: Position) -> None:
        """Judge a call, then enter it."""
        seen = None if event.fp is None else event.fp.extended
        if seen is None:
            raise ValueError("a call without this profile's digests")
        state, limits, book = step.state, step.limits, _book(step.state)
        tool = kept_name(event.tool)
        signature = signature_of(tool, seen.masked or seen.args)
        target = _covering_target(state, tool, signature) if state.standing else None
        step.covering = standing = None if target is None else state.standing[target]
        # Who waits is answered in shadow mode too, and goes on whatever the answer is.
        gated = event.disposition == "gated"
        executed = event.disposition == "executed" or self._shadow
        state.totals.calls += 1
        state.totals.refused += event.disposition == "refused" and not self._shadow
        if standing is not None:
            state.totals.blocks += 1
        if gated:
            self._say(step, _answer(state, book, tool, signature, standing))
        elif standing is not None:
            reason = _still(standing)
            self._say(step, Decision(Action.BLOCK, Level.CRITICAL, standing, reason, target))
        _advance(book, event, at)
        if not executed and (standing is not None or not gated):
            book.refused(tool)
        enters = executed or (gated and standing is None)
        if enters and limits.entered:
            self._enter(step, book, event, tool, signature, seen, at)
        if event.batch or not enters or book.spent or tool == MESSAGE_TOOL:
            self._watch(step, None, tool)

    def _enter(
        self,
        step: StepLike,
        book: Book,
        event: ToolCall,
        tool: str,
        signature: str,
        seen: ExtendedCall,
        at: Position,
    ) -> None:
        limits = _limits(step.limits)
        poll = limits.poll(tool)
        if limits.spends:
            fresh = signature not in book.calls
            self._spend(book, limits, tool, fresh, seen.tokens or 0, seen.cost or 0)
        book.enter(
            tool,
            signature,
            seen if poll is None else seen.model_copy(update={"poll": poll}),
            call_id=None if event.call_id is None else kept_name(event.call_id),
            batch=batch_of(event.batch),
            offset=at.offset,
        )
        book.evict(limits.history_size)

    def outcome(self, step: StepLike, event: ToolOutcome, at: Position) -> None:
        """Settle a call."""
        seen = None if event.fp is None else event.fp.extended
        if seen is None:
            raise ValueError("an outcome without this profile's digests")
        state, book, tool = step.state, _book(step.state), kept_name(event.tool)
        state.totals.outcomes += 1
        _advance(book, event, at)
        record = book.settle(
            tool,
            signature_of(tool, seen.masked or seen.args),
            seen,
            call_id=None if event.call_id is None else kept_name(event.call_id),
            offset=at.offset,
            executed=event.executed,
        )
        if record is None:
            return
        step.recorded = True
        limits = _limits(step.limits)
        book.evict(limits.history_size)
        if record.out and step.limits.guard and state.guard.remaining:
            self._guard(step, record)
        if limits.outside or not book.calm(record) or not step.limits.enabled:
            self._watch(step, record, tool)

    def compaction(self, step: StepLike, event: Compaction, at: Position) -> None:
        """The context was compacted; counts go on, and the guard is armed as documented."""
        state, book = step.state, _book(step.state)
        _advance(book, event, at)
        if not event.succeeded:
            return
        if event.retried and step.limits.guard:
            state.guard.arm(step.limits.guard_window)
        book.compact(event.tokens_before, event.tokens_after)
        self._watch(step, None, "")

    def release(self, step: StepLike, mute: Callable[[str], bytes], reason: str) -> None:
        """An operator lets the run go on: what is blocked now is muted until its result changes."""
        state, book = step.state, _book(step.state)
        state.mutes += [mute(alarm.subject) for alarm in book.alarms.values() if alarm.level > 1]
        for key in [key for key, alarm in book.alarms.items() if alarm.level > 1]:
            del book.alarms[key]
        book.forgive()
        self._sync(step, {}, reason)

    # -- what follows ----------------------------------------------------------------------

    def _watch(self, step: StepLike, record: Record | None, tool: str) -> None:
        state, limits, book = step.state, step.limits, _book(step.state)
        if not limits.enabled:
            if book.alarms or state.standing:
                book.alarms.clear()
                self._sync(step, {})
            return
        watch = Watch(book, _limits(limits), state.mutes)
        watch.after(record, tool)
        if not watch.changes and not watch.lifted:
            return
        texts = {id(change.alarm): change.text for change in watch.changes}
        for change in watch.changes:
            self._tell(step, change)
        hops = len(book.hops)
        self._sync(step, texts)
        if len(book.hops) != hops:
            again = Watch(book, _limits(limits), state.mutes)
            again.after(None, tool)
            for change in again.changes:
                self._tell(step, change)

    def _tell(self, step: StepLike, change: Change) -> None:
        """Warnings, aborts, and whatever is only shadowed; blocks follow from `_sync`."""
        alarm, state, book = change.alarm, step.state, _book(step.state)
        standing = _standing_of(alarm)
        if alarm.shadow:
            if change.risen:
                action = _ACTIONS[alarm.level]
                level = Level.WARNING if alarm.level == Severity.WARN else Level.CRITICAL
                self._say(
                    step,
                    _decision(action, level, alarm, _reason(book, alarm, change.text), "shadow"),
                )
        elif alarm.level == Severity.WARN:
            run = step.state.run
            if not announce(state.throttle, run, standing.key, alarm.count, self._announce):
                return
            alarm.heard = alarm.heard or alarm.count
            book.warned += 1
            state.totals.warnings += 1
            step.announced = True
            reason = _reason(book, alarm, change.text)
            decision = _decision(Action.WARN, Level.WARNING, alarm, reason)
            if change.meant > alarm.level:
                decision = replace(decision, instead_of=_ACTIONS[change.meant])
            self._say(step, decision)
        elif alarm.level == Severity.ABORT and change.risen and state.aborted is None:
            state.aborted = standing
            reason = _reason(book, alarm, change.text)
            self._say(step, _decision(Action.ABORT, Level.CRITICAL, alarm, reason))

    def _sync(self, step: StepLike, texts: dict[int, str], released: str = _LIFTED) -> None:
        """Publish which calls have just come to be refused, and which no longer are."""
        state, book = step.state, _book(step.state)
        wanted: dict[Target, Alarm] = {}
        for alarm in book.alarms.values():
            if alarm.level == Severity.BLOCK and not alarm.shadow:
                for covered in alarm.targets:
                    wanted.setdefault(Target(*covered), alarm)
        lifted: dict[Standing, list[Target]] = {}
        for target in [target for target in state.standing if target not in wanted]:
            lifted.setdefault(state.standing.pop(target), []).append(target)
        for standing, targets in lifted.items():
            self._say(
                step,
                Decision(Action.RELEASE, Level.NONE, standing, released, targets=tuple(targets)),
            )
        raised: dict[int, tuple[Alarm, list[Target]]] = {}
        for target, alarm in wanted.items():
            if target not in state.standing:
                raised.setdefault(id(alarm), (alarm, []))[1].append(target)
        for alarm, targets in raised.values():
            if len(targets) == len(alarm.targets):
                book.hopped(alarm.tool)
            standing = _standing_of(alarm)
            state.standing.update(dict.fromkeys(targets, standing))
            text = texts.get(id(alarm))
            reason = _still(standing) if text is None else _reason(book, alarm, text)
            self._say(
                step,
                Decision(Action.BLOCK, Level.CRITICAL, standing, reason, targets=tuple(targets)),
            )

    def _guard(self, step: StepLike, record: Record) -> None:
        """As documented, but only for what was stuck before the compaction, and never for polls."""
        state, call = step.state, record.call
        seen = step.guard = state.guard.observe(call.signature, f"{record.out:x}")
        stuck_before = call.count > seen.count and not call.poll and call.effect != "wait"
        if not seen.abort or state.aborted is not None or not stuck_before:
            return
        name, tool = DetectorName.GUARD.value, call.tool.name
        key = f"compaction:{call.signature}:{record.out:x}"
        standing = Standing(name, seen.count, state.guard.window, key, tool)
        repeated = (
            f"After its context was compacted the run repeated the same call of {shown(tool)} with "
            f"the same result {seen.count} times, as before."
        )
        target, mode = Target(signature=call.signature), step.limits.guard_mode
        if mode == "warn":
            state.totals.warnings += 1
            reason = f"{repeated} Change the approach."
            warning = Decision(Action.WARN, Level.WARNING, standing, reason, target)
            self._say(step, replace(warning, instead_of=Action.ABORT))
            return
        reason = f"{repeated} The run is stopped."
        abort = Decision(Action.ABORT, Level.CRITICAL, standing, reason, target)
        if mode == "shadow":
            self._say(step, replace(abort, mode="shadow"))
            return
        state.aborted = standing
        self._say(step, abort)

    def _spend(
        self, book: Book, limits: ExtendedLimits, tool: str, fresh: bool, tokens: int, cost: int
    ) -> None:
        for armed in limits.rules(tool)[About.RUN]:
            params = armed.params
            if isinstance(params, BudgetParams) and params.window:
                slot_ms = max(params.window * 1000 // SLOTS, 1)
                book.spend(book.time, slot_ms, SLOTS, (1, int(fresh), tokens, cost))


_ACTIONS: Final = {1: Action.WARN, 2: Action.BLOCK, 3: Action.ABORT}


def kept_name(name: str) -> str:
    """A name as it is kept: a digest where it is too long."""
    return name if len(name) <= _SURELY_SHORT else short_name(name)


def _book(state: RunState) -> Book:
    if state.extended is None:
        state.extended = Book()
    return state.extended


def _advance(book: Book, event: RunEvent, at: Position) -> None:
    time = event.time
    if at.append_time:
        time = min(time, at.append_time + _CLOCK_SKEW_MS)
    book.time = max(book.time, time)


def _limits(limits: Limits) -> ExtendedLimits:
    return limits.extended or _DEFAULTS


def _covering_target(state: RunState, tool: str, signature: str) -> Target | None:
    for target in state.standing:
        if target.covers(tool, signature):
            return target
    return None


def _standing_of(alarm: Alarm) -> Standing:
    key = f"{alarm.detector}:{alarm.thing}:{alarm.variant}"
    return Standing(
        alarm.detector, alarm.count, alarm.threshold, key, alarm.tool or None, alarm.paired
    )


def _targets(state: RunState, standing: Standing) -> tuple[Target, ...]:
    return tuple(target for target, other in state.standing.items() if other == standing)


def _decision(
    action: Action, level: Level, alarm: Alarm, reason: str, mode: Mode | None = None
) -> Decision:
    targets = tuple(Target(*covered) for covered in alarm.targets)
    return Decision(action, level, _standing_of(alarm), reason, targets=targets, mode=mode)


def _answer(
    state: RunState, book: Book, tool: str, signature: str, standing: Standing | None
) -> Decision:
    if standing is not None:
        targets = _targets(state, standing)
        return Decision(Action.ANSWER, Level.CRITICAL, standing, _still(standing), targets=targets)
    for alarm in book.alarms.values():
        warns = alarm.level == Severity.WARN and not alarm.shadow
        if warns and any(Target(*covered).covers(tool, signature) for covered in alarm.targets):
            reason = f"{shown(tool)} is getting nowhere: {alarm.detector}, {alarm.count} times."
            return _decision(Action.ANSWER, Level.WARNING, alarm, reason)
    nothing = Standing("none", 0, 0, "gate", None)
    return Decision(Action.ANSWER, Level.NONE, nothing, "Nothing stands against this call.")


def _still(standing: Standing) -> str:
    tool = shown(standing.tool or "the run")
    return (
        f"Still refused: {standing.detector} of {tool}, seen {standing.count} times. It may be "
        "tried again when something has changed."
    )


def _reason(book: Book, alarm: Alarm, text: str) -> str:
    paired = "" if alarm.paired is None else f", {alarm.paired[:_SHOWN_PAIRED]}"
    reason = text.format(tool=shown(alarm.tool), paired=paired, count=alarm.count)
    if alarm.level > 1 and alarm.heard and alarm.count > alarm.heard:
        reason += f" A warning was ignored {alarm.count - alarm.heard} times."
    if alarm.level > 1 and book.vetoes > 1 and not alarm.detector.startswith("veto"):
        reason += f" {book.vetoes} refused calls were tried again."
    return reason
