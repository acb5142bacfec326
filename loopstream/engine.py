"""The product: one event of one run in, judgement and verdicts out. This is where a verdict is
decided; everything around it (worker, replay, tests) is a shell.

Pure: no clock, no IO, no chance. The same events give the same verdicts, byte for byte.
"""

from __future__ import annotations

import hashlib
from typing import Final, Protocol, overload

from loopstream.detect.base import DetectorName, Finding
from loopstream.detect.judge import forecast, judge, judge_in_shadow, mute_of
from loopstream.detect.limits import Limits
from loopstream.detect.profiles import PROFILES, Profile
from loopstream.events import (
    Action,
    Compaction,
    Control,
    EventsLost,
    Level,
    RunEnded,
    RunEvent,
    RunStarted,
    ToolCall,
    ToolOutcome,
    Verdict,
)
from loopstream.events.text import short_name
from loopstream.events.tool import (
    CallDigests,
    ExtendedCall,
    ExtendedOutcome,
    OutcomeDigests,
)
from loopstream.fingerprint.calls import signature as signature_of
from loopstream.fingerprint.outcomes import OutcomeKind, result_text
from loopstream.policy.deployment import Deployment
from loopstream.policy.extended import ExtendedFold
from loopstream.policy.orders import Order
from loopstream.policy.reasons import reason_of
from loopstream.policy.throttle import announce
from loopstream.policy.verdicts import (
    Decision,
    Position,
    Trigger,
    publish,
    standing_of,
    widened,
)
from loopstream.state.guard import IDLE, Guard, Observation
from loopstream.state.history import History, Settlement
from loopstream.state.run import RunState, Standing, Target

# A name this short can't be over 128 bytes.
_SURELY_SHORT: Final = 32
_MAX_MUTES: Final = 64
# Runners may claim anything: what they lost stays a number that every reader can hold.
_MAX_LOST: Final = 2**53 - 1
_VETO: Final = OutcomeKind.VETO.value
_RELEASED: Final = "What was refused may be tried again: the pattern no longer holds."
OPERATOR: Final = "operator"


class Retention(Protocol):
    """Who evicts when a history has grown."""

    def __call__(self, history: History, size: int, *, grown: bool) -> None:
        """Evict what is over ``size``; ``grown`` tells whether a record was just appended."""
        ...


def retain_per_run(history: History, size: int, *, grown: bool) -> None:  # noqa: ARG001 - protocol
    """A run evicts its own records (the reference shares one list among a session's runs)."""
    records = history.records
    while len(records) > size:
        history.evict_oldest()


class Step:
    """What one event came to.

    Attributes:
        judgement: the finding that won for a call, if any.
        announced: a warning that its throttle let through.
        guard: what the post-compaction guard said of a recorded outcome.
        recorded: an outcome was entered into the history.
        covering: the standing block that covers a call (profile ``extended``).
        verdicts: what is to be published, in order.
    """

    __slots__ = (
        "_at",
        "_event",
        "_trigger",
        "announced",
        "covering",
        "guard",
        "judgement",
        "limits",
        "recorded",
        "state",
        "verdicts",
    )

    def __init__(
        self, state: RunState, limits: Limits, event: RunEvent | Control, at: Position
    ) -> None:
        self.state = state
        self.limits = limits
        self.judgement: Finding | None = None
        self.announced = False
        self.guard: Observation = IDLE
        self.recorded = False
        self.covering: Standing | None = None
        self.verdicts: list[Verdict] = []
        self._event = event
        self._at = at
        self._trigger: Trigger | None = None

    @property
    def trigger(self) -> Trigger:
        """The event as the cause of verdicts; made only when there is something to say."""
        if self._trigger is None:
            self._trigger = Trigger.of(self._event, self._at)
        return self._trigger


class OrderedStep(Step):
    """What an operator's order came to."""

    __slots__ = ("order",)

    def __init__(
        self,
        state: RunState,
        limits: Limits,
        event: RunEvent | Control,
        at: Position,
        order: Order,
    ) -> None:
        super().__init__(state, limits, event, at)
        self.order = order

    @property
    def trigger(self) -> Trigger:
        """The order as the cause of verdicts: they carry its name and reason."""
        if self._trigger is None:
            last_event = self.state.last_event
            self._trigger = Trigger.of(self._event, self._at, self.order, last_event)
        return self._trigger


class Engine:
    """The rules of one deployment.

    Args:
        deployment: profile, announcing, mode: what decides beside the settings.
        retain: who evicts; per run, or for conformance per session.
    """

    def __init__(self, deployment: Deployment, retain: Retention = retain_per_run) -> None:
        self.deployment = deployment
        extended = deployment.profile == "extended"
        self._extended = ExtendedFold(deployment, self._say) if extended else None
        # Rules over the history that the documented profiles share; empty under ``extended``.
        self.profile: Profile = PROFILES["documented" if extended else deployment.profile]
        self._documented = deployment.profile == "documented"
        self._shadow = deployment.mode == "shadow"
        self._retain = retain

    @overload
    def digests(self, event: ToolCall) -> CallDigests | ExtendedCall | None: ...

    @overload
    def digests(self, event: ToolOutcome) -> OutcomeDigests | ExtendedOutcome | None: ...

    def digests(
        self, event: ToolCall | ToolOutcome
    ) -> CallDigests | ExtendedCall | ExtendedOutcome | None:
        """The event's digests for this deployment's profile; None if it has none."""
        fp = event.fp
        if fp is None:
            return None
        if self._extended is not None:
            return fp.extended
        return fp.documented if self._documented else fp.reference

    def step(self, state: RunState, event: RunEvent, limits: Limits, at: Position) -> Step:
        """Fold one event into its run's state, in place.

        Args:
            state: the run's state; that the event belongs to it is checked before (partition.py).
            event: tool events must carry this profile's digests.
            limits: the settings in force for the run's agent.
            at: where the event stands in the log.
        """
        step = Step(state, limits, event, at)
        if self._extended is not None:
            self._step_extended(self._extended, step, event, at)
            return step
        history = state.history
        history.watch(limits.critical)
        if type(event) is ToolCall:
            self._call(step, event, at)
        elif type(event) is ToolOutcome:
            self._outcome(step, event, at)
        elif type(event) is Compaction:
            if event.succeeded and event.retried and limits.guard:
                state.guard.arm(limits.guard_window)
        elif type(event) is RunStarted:
            self._started(step, event)
        elif type(event) is RunEnded:
            state.ended = at.append_time
        else:
            _lost(state, event)
        state.last_event = event.time
        if state.standing or not self.profile.calm(state.history, limits):
            self._update_standing(step)
        return step

    def _step_extended(self, fold: ExtendedFold, step: Step, event: RunEvent, at: Position) -> None:
        state = step.state
        if type(event) is ToolCall:
            fold.call(step, event, at)
        elif type(event) is ToolOutcome:
            fold.outcome(step, event, at)
        elif type(event) is Compaction:
            fold.compaction(step, event, at)
        elif type(event) is RunStarted:
            self._started(step, event)
        elif type(event) is RunEnded:
            state.ended = at.append_time
        else:
            _lost(state, event)
        state.last_event = event.time

    # -- calls -----------------------------------------------------------------------------

    def _call(self, step: Step, event: ToolCall, at: Position) -> None:
        fp = event.fp
        digests = None
        if fp is not None:
            digests = fp.documented if self._documented else fp.reference
        if digests is None:
            raise ValueError("a call without this profile's digests")
        state, limits = step.state, step.limits
        tool, disposition = _kept(event.tool), event.disposition
        # Who waits is answered in shadow mode too: the runner goes on at once, whatever it says.
        waits = disposition == "gated"
        signature = signature_of(tool, digests.args)
        history = state.history
        finding = judge(
            self.profile,
            history,
            limits,
            tool,
            signature,
            poll=digests.poll,
            mutes=state.mutes,
        )
        if self._shadow:
            disposition = "executed"
        state.totals.calls += 1
        if disposition == "refused":
            state.totals.refused += 1
        enters = disposition == "executed" or (disposition == "gated" and not _critical(finding))
        enters = enters and limits.entered
        if finding is not None or waits:
            self._speak(step, event, finding, gated=waits, enters=enters)
        if limits.rollout is not None:
            self._speak_in_shadow(step, event, tool, signature, poll=digests.poll)
        if enters:
            call_id = None if event.call_id is None else _kept_id(event.call_id)
            history.enter(tool, signature, digests.poll, call_id=call_id, offset=at.offset)
            self._retain(history, limits.history_size, grown=True)

    def _speak(
        self, step: Step, event: ToolCall, finding: Finding | None, *, gated: bool, enters: bool
    ) -> None:
        """Say what a judged call came to: an answer to a gate, else a block or a warning."""
        step.judgement = finding
        totals, critical = step.state.totals, _critical(finding)
        if finding is not None and not critical:
            how = self.deployment.announce
            throttle = step.state.throttle
            step.announced = announce(throttle, event.run, finding.key, finding.count, how)
        totals.warnings += step.announced
        totals.blocks += critical
        heard = finding if critical or step.announced else None
        if gated:
            self._say(step, _answer(heard, step.trigger))
        elif heard is not None and critical:
            target = _refused_by(step.state, heard, enters=enters)
            standing, reason = standing_of(heard), reason_of(heard)
            self._say(step, Decision(Action.BLOCK, heard.level, standing, reason, target))
        elif heard is not None:
            self._say(step, Decision.on(Action.WARN, heard, reason_of(heard)))

    def _speak_in_shadow(
        self, step: Step, event: ToolCall, tool: str, signature: str, *, poll: bool
    ) -> None:
        """What detectors in shadow make of a call: said, and neither counted nor kept."""
        state, limits = step.state, step.limits
        finding = judge_in_shadow(
            self.profile, state.history, limits, tool, signature, poll=poll, mutes=state.mutes
        )
        if finding is None:
            return
        action = Action.BLOCK
        if not _critical(finding):
            action, key, how = Action.WARN, f"shadow:{finding.key}", self.deployment.announce
            if not announce(state.throttle, event.run, key, finding.count, how):
                return
        self._say(step, Decision.on(action, finding, reason_of(finding), mode="shadow"))

    # -- outcomes --------------------------------------------------------------------------

    def _outcome(self, step: Step, event: ToolOutcome, at: Position) -> None:
        fp = event.fp
        digests = None
        if fp is not None:
            digests = fp.documented if self._documented else fp.reference
        if digests is None:
            raise ValueError("an outcome without this profile's digests")
        state, limits = step.state, step.limits
        state.totals.outcomes += 1
        # A runner may send what makes no sense: a veto is known to one profile, and has no result.
        vetoed = digests.kind == _VETO and not self._documented
        if digests.result is None and not vetoed:
            return
        history = state.history
        tool = _kept(event.tool)
        signature = signature_of(tool, digests.args)
        result = missing = None
        if digests.result is not None and not vetoed:
            result = result_text(digests.result, digests.failed)
            missing = digests.unknown_tool
        before = len(history)
        history.settle(
            tool,
            signature,
            digests.poll,
            Settlement(
                result,
                None if missing is None else _kept(missing),
                vetoed,
                digests.no_progress,
                None if digests.failure is None else digests.failure.hex(),
            ),
            call_id=None if event.call_id is None else _kept_id(event.call_id),
            offset=at.offset,
        )
        step.recorded = True
        self._retain(history, limits.history_size, grown=len(history) > before)
        if result is not None and limits.guard and state.guard.remaining:
            self._watch_guard(step, tool, signature, result)

    def _watch_guard(self, step: Step, tool: str, signature: str, result: str) -> None:
        state = step.state
        seen = step.guard = state.guard.observe(signature, result)
        if not seen.abort or state.aborted is not None:
            return
        mode = step.limits.guard_mode
        finding = Finding(
            Level.WARNING if mode == "warn" else Level.CRITICAL,
            DetectorName.GUARD,
            seen.count,
            state.guard.window,
            f"compaction:{tool}:{signature}:{result}",
            tool,
            target=Target(signature=signature),
            subject="",
            capped=mode == "warn",
        )
        reason = reason_of(finding)
        if mode == "warn":
            state.totals.warnings += 1
            self._say(step, Decision.on(Action.WARN, finding, reason))
        elif mode == "shadow":
            self._say(step, Decision.on(Action.ABORT, finding, reason, mode="shadow"))
        else:
            state.aborted = standing_of(finding)
            self._say(step, Decision.on(Action.ABORT, finding, reason))

    # -- the run ---------------------------------------------------------------------------

    def _started(self, step: Step, event: RunStarted) -> None:
        state = step.state
        if state.ended is not None:
            state.ended = None
            if not event.resumed:
                _begin_anew(state)
        if not event.resumed:
            return
        for target, standing in state.standing.items():
            self._say(step, _still(Action.BLOCK, standing, target))
        if state.aborted is not None:
            told = state.last_verdict
            why = None if told is None or told.action != Action.ABORT else told.order
            self._say(step, _still(Action.ABORT, state.aborted, None, why))

    def _update_standing(self, step: Step, released: str = _RELEASED) -> None:
        """Publish which calls have just become critical, and which no longer are.

        Args:
            released: why they no longer are.
        """
        state = step.state
        now = forecast(self.profile, state.history, step.limits, state.mutes)
        for target in [t for t in state.standing if t not in now]:
            lifted = state.standing.pop(target)
            self._say(step, Decision(Action.RELEASE, Level.NONE, lifted, released, target))
        for target, finding in now.items():
            if target not in state.standing:
                standing = state.standing[target] = standing_of(finding)
                reason = reason_of(finding)
                self._say(step, Decision(Action.BLOCK, Level.CRITICAL, standing, reason, target))

    def _say(self, step: Step, decision: Decision) -> None:
        said = (decision.action, decision.standing.detector, decision.standing.key)
        for at, verdict in enumerate(step.verdicts):
            if (verdict.action, verdict.detector, verdict.key) == said:
                # The same event said so already, and under the same id: of one more target.
                for target in decision.targets or (decision.target,):
                    step.verdicts[at] = widened(step.verdicts[at], target)
                return
        verdict = publish(self.deployment, step.state, step.limits, step.trigger, decision)
        step.verdicts.append(verdict)

    # -- operators -------------------------------------------------------------------------

    def release(self, step: Step, reason: str) -> Step:
        """Let the run go on: what is blocked now is muted until its result changes."""
        state = step.state
        if self._extended is not None:
            self._extended.release(step, mute_of, reason)
            del state.mutes[:-_MAX_MUTES]
            return self._lift_abort(step, reason)
        state.history.watch(step.limits.critical)
        # Where one rule is muted the next may speak: as often as there are rules.
        for _ in self.profile.detectors:
            standing = forecast(self.profile, state.history, step.limits, state.mutes)
            state.mutes += [mute_of(finding.subject) for finding in standing.values()]
            del state.mutes[:-_MAX_MUTES]
        self._update_standing(step, reason)
        return self._lift_abort(step, reason)

    def _lift_abort(self, step: Step, reason: str) -> Step:
        state = step.state
        if state.aborted is not None:
            lifted, state.aborted = state.aborted, None
            self._say(step, Decision(Action.RELEASE, Level.NONE, lifted, reason))
        return step

    def abort(self, step: Step, reason: str) -> Step:
        """End the run."""
        state = step.state
        if state.aborted is None:
            state.aborted = Standing(OPERATOR, 0, 0, f"{OPERATOR}:abort", None)
            self._say(step, Decision(Action.ABORT, Level.CRITICAL, state.aborted, reason))
        return step


def _kept(name: str) -> str:
    return name if len(name) <= _SURELY_SHORT else short_name(name)


def _kept_id(call_id: str) -> str:
    """A call id is only ever compared, and thousands may be pending: 32 bytes at most are kept."""
    if len(call_id) <= _SURELY_SHORT and call_id.isascii():
        return call_id
    return hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:_SURELY_SHORT]


def _critical(finding: Finding | None) -> bool:
    return finding is not None and finding.level is Level.CRITICAL


def _refused_by(state: RunState, finding: Finding, *, enters: bool) -> Target:
    """What a block on a call that came all the same covers: what stands against it.

    Whatever is published as blocked stands, so that it is released one day: settings may have
    changed since the last forecast, or the call may push its own evidence out of the history.
    """
    target = finding.target
    if not enters and target not in state.standing:
        signature = target.signature or ""
        covering = (t for t in state.standing if t.covers(finding.tool, signature))
        target = next(covering, target)
    state.standing.setdefault(target, standing_of(finding))
    return target


def _still(
    action: Action, standing: Standing, target: Target | None, order: str | None = None
) -> Decision:
    why = f"{standing.detector}." if order is None else order
    reason = f"Still in force after the run was taken up again: {why}"
    return Decision(action, Level.CRITICAL, standing, reason, target)


def _answer(finding: Finding | None, trigger: Trigger) -> Decision:
    """The answer to a gate; where nothing is to be said it is keyed on the event that waits."""
    if finding is not None:
        return Decision.on(Action.ANSWER, finding, reason_of(finding))
    nothing = Standing("none", 0, 0, f"gate:{trigger.id}", None)
    return Decision(Action.ANSWER, Level.NONE, nothing, "Nothing stands against this call.")


def _lost(state: RunState, event: EventsLost) -> None:
    state.totals.lost = min(state.totals.lost + event.count, _MAX_LOST)


def _begin_anew(state: RunState) -> None:
    """A run that had ended starts again under its old id: nothing is held against it."""
    state.history = History()
    state.extended = None
    state.guard = Guard()
    state.throttle.clear()
    state.standing.clear()
    state.mutes.clear()
    state.aborted = None
