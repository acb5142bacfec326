"""The product: one event of one run in, judgement and verdicts out. This is where a verdict is
decided; everything around it (worker, replay, tests) is a shell.

Pure: no clock, no IO, no chance. The same events give the same verdicts, byte for byte.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Protocol

from loopstream.detect.base import DetectorName, Finding
from loopstream.detect.judge import forecast, judge, mute_of
from loopstream.detect.limits import Limits
from loopstream.detect.profiles import PROFILES
from loopstream.events import (
    Action,
    CallDigests,
    Compaction,
    EventsLost,
    Level,
    OutcomeDigests,
    RunEnded,
    RunEvent,
    RunStarted,
    ToolCall,
    ToolOutcome,
    Verdict,
)
from loopstream.events.text import short_name
from loopstream.fingerprint.calls import signature as signature_of
from loopstream.fingerprint.outcomes import OutcomeKind, result_text
from loopstream.policy.deployment import Deployment
from loopstream.policy.reasons import reason_of
from loopstream.policy.throttle import announce
from loopstream.policy.verdicts import Decision, Position, Trigger, publish, standing_of
from loopstream.state.guard import Guard, Observation
from loopstream.state.history import History, Settlement
from loopstream.state.run import RunState, Standing, Target

# A name this short can't be over 128 bytes.
_SURELY_SHORT: Final = 32
_MAX_MUTES: Final = 64
NO_FINDING: Final = "none"


class Retention(Protocol):
    """Who evicts when a history has grown."""

    def __call__(self, history: History, size: int, grown: bool) -> None:
        """Evict what is over ``size``; ``grown`` tells whether a record was just appended."""
        ...


def retain_per_run(history: History, size: int, grown: bool) -> None:
    """A run evicts its own records (the reference shares one list among a session's runs)."""
    while len(history) > size:
        history.evict_oldest()


@dataclass(slots=True)
class Step:
    """What one event came to."""

    judgement: Finding | None = None
    announced: bool = False
    """A warning that its throttle let through."""
    guard: Observation | None = None
    recorded: bool = False
    """An outcome that was entered into the history."""
    verdicts: list[Verdict] = field(default_factory=list)


class Engine:
    """The rules of one deployment.

    Args:
        deployment: profile, announcing, mode: what decides beside the settings.
        retain: who evicts; per run, or for conformance per session.
    """

    def __init__(self, deployment: Deployment, retain: Retention = retain_per_run) -> None:
        self.deployment = deployment
        self.profile = PROFILES[deployment.profile]
        self._digests = "reference" if deployment.profile != "documented" else "documented"
        self._retain = retain

    def digests(self, event: ToolCall | ToolOutcome) -> CallDigests | OutcomeDigests | None:
        """The event's digests for this deployment's profile; None if it has none."""
        fp = event.fp
        return None if fp is None else getattr(fp, self._digests)

    def step(self, state: RunState, event: RunEvent, limits: Limits, at: Position) -> Step:
        """Fold one event into its run's state, in place.

        Args:
            state: the run's state; its identity must match the event (`partition` checks).
            event: tool events must carry this profile's digests.
            limits: the settings in force for the run's agent.
            at: where the event stands in the log.
        """
        step = Step()
        state.history.watch(limits.critical)
        match event:
            case ToolCall():
                self._call(step, state, event, limits, at)
            case ToolOutcome():
                self._outcome(step, state, event, limits, at)
            case Compaction():
                if event.succeeded and event.retried and limits.guard:
                    state.guard.arm(limits.guard_window)
            case RunStarted():
                self._started(step, state, event, limits, at)
            case RunEnded():
                state.ended = at.append_time
            case EventsLost():
                state.totals.lost += event.count
        state.last_event = event.time
        if state.standing or not self.profile.calm(state.history, limits):
            self._update_standing(step, state, limits, Trigger.of(event, at))
        return step

    def refresh(self, state: RunState, limits: Limits, trigger: Trigger) -> list[Verdict]:
        """Bring the standing blocks up to date after settings changed: blocks and releases."""
        step = Step()
        state.history.watch(limits.critical)
        self._update_standing(step, state, limits, trigger)
        return step.verdicts

    def release(
        self, state: RunState, limits: Limits, trigger: Trigger, reason: str
    ) -> list[Verdict]:
        """An operator lets the run go on: what is blocked now is muted until its result changes."""
        step = Step()
        state.history.watch(limits.critical)
        for finding in forecast(self.profile, state.history, limits, state.mutes).values():
            state.mutes.append(mute_of(finding.subject))
        del state.mutes[:-_MAX_MUTES]
        self._update_standing(step, state, limits, trigger)
        if state.aborted is not None:
            lifted, state.aborted = state.aborted, None
            decision = Decision(Action.RELEASE, Level.NONE, lifted, reason)
            self._publish(step, state, limits, trigger, decision)
        return step.verdicts

    def abort(
        self, state: RunState, limits: Limits, trigger: Trigger, reason: str
    ) -> list[Verdict]:
        """An operator ends the run."""
        step = Step()
        if state.aborted is None:
            state.aborted = Standing("operator", 0, 0, "operator:abort", None)
            decision = Decision(Action.ABORT, Level.CRITICAL, state.aborted, reason)
            self._publish(step, state, limits, trigger, decision)
        return step.verdicts

    # -- calls -----------------------------------------------------------------------------

    def _call(
        self, step: Step, state: RunState, event: ToolCall, limits: Limits, at: Position
    ) -> None:
        digests = self.digests(event)
        assert digests is not None, "partition refuses events without digests"
        tool = _kept(event.tool)
        signature = signature_of(tool, digests.args)
        state.totals.calls += 1
        finding = judge(
            self.profile,
            state.history,
            limits,
            tool,
            signature,
            poll=digests.poll,
            mutes=state.mutes,
        )
        critical = finding is not None and finding.level is Level.CRITICAL
        disposition = "executed" if self.deployment.mode == "shadow" else event.disposition
        if disposition == "refused":
            state.totals.refused += 1
        if disposition == "gated" or finding is not None:
            self._speak(step, state, event, limits, at, finding, disposition)
        enters = disposition == "executed" or (disposition == "gated" and not critical)
        if enters and limits.entered:
            call_id = None if event.call_id is None else _kept(event.call_id)
            state.history.enter(tool, signature, digests.poll, call_id, at.offset)
            self._retain(state.history, limits.history_size, grown=True)

    def _speak(
        self,
        step: Step,
        state: RunState,
        event: ToolCall,
        limits: Limits,
        at: Position,
        finding: Finding | None,
        disposition: str,
    ) -> None:
        """Say what a judged call came to: an answer to a gate, else a block or a warning."""
        step.judgement = finding
        trigger = Trigger.of(event, at)
        critical = finding is not None and finding.level is Level.CRITICAL
        if finding is not None and not critical:
            how = self.deployment.announce
            step.announced = announce(state.throttle, event.run, finding.key, finding.count, how)
            state.totals.warnings += step.announced
        state.totals.blocks += critical
        if disposition == "gated":
            heard = finding if critical or step.announced else None
            self._publish(step, state, limits, trigger, _answer(heard, trigger))
        elif finding is not None and (critical or step.announced):
            action = Action.BLOCK if critical else Action.WARN
            decision = Decision.on(action, finding, reason_of(finding))
            self._publish(step, state, limits, trigger, decision)

    # -- outcomes --------------------------------------------------------------------------

    def _outcome(
        self, step: Step, state: RunState, event: ToolOutcome, limits: Limits, at: Position
    ) -> None:
        digests = self.digests(event)
        assert isinstance(digests, OutcomeDigests), "partition refuses events without digests"
        state.totals.outcomes += 1
        vetoed = digests.kind == OutcomeKind.VETO.value
        if digests.result is None and not vetoed:
            return
        tool = _kept(event.tool)
        signature = signature_of(tool, digests.args)
        result = None if digests.result is None else result_text(digests.result, digests.failed)
        before = len(state.history)
        state.history.settle(
            tool,
            signature,
            digests.poll,
            None if event.call_id is None else _kept(event.call_id),
            Settlement(
                result,
                None if digests.unknown_tool is None else _kept(digests.unknown_tool),
                vetoed,
                digests.no_progress,
                None if digests.failure is None else digests.failure.hex(),
            ),
            at.offset,
        )
        step.recorded = True
        self._retain(state.history, limits.history_size, grown=len(state.history) > before)
        if result is not None and limits.guard:
            self._watch_guard(step, state, limits, Trigger.of(event, at), (tool, signature, result))

    def _watch_guard(
        self,
        step: Step,
        state: RunState,
        limits: Limits,
        trigger: Trigger,
        outcome: tuple[str, str, str],
    ) -> None:
        if state.guard.window == 0:
            return  # no compaction in this run yet
        tool, signature, result = outcome
        seen = step.guard = state.guard.observe(signature, result)
        if not seen.abort or state.aborted is not None:
            return
        finding = Finding(
            Level.CRITICAL,
            DetectorName.GUARD,
            seen.count,
            state.guard.window,
            f"compaction:{tool}:{signature}:{result}",
            tool,
            target=Target(signature=signature),
            subject="",
        )
        state.aborted = standing_of(finding)
        decision = Decision(
            Action.ABORT, Level.CRITICAL, state.aborted, reason_of(finding), finding.target
        )
        self._publish(step, state, limits, trigger, decision)

    # -- the run ---------------------------------------------------------------------------

    def _started(
        self, step: Step, state: RunState, event: RunStarted, limits: Limits, at: Position
    ) -> None:
        if state.ended is not None:
            state.ended = None
            if not event.resumed:
                _begin_anew(state)
        if event.resumed:
            trigger = Trigger.of(event, at)
            for target, standing in state.standing.items():
                decision = Decision(
                    Action.BLOCK, Level.CRITICAL, standing, _still(standing), target
                )
                self._publish(step, state, limits, trigger, decision)
            if state.aborted is not None:
                decision = Decision(
                    Action.ABORT, Level.CRITICAL, state.aborted, _still(state.aborted)
                )
                self._publish(step, state, limits, trigger, decision)

    def _update_standing(
        self, step: Step, state: RunState, limits: Limits, trigger: Trigger
    ) -> None:
        """Publish which calls have just become critical, and which no longer are."""
        now = forecast(self.profile, state.history, limits, state.mutes)
        for target in [t for t in state.standing if t not in now]:
            standing = state.standing.pop(target)
            decision = Decision(Action.RELEASE, Level.NONE, standing, _RELEASED, target)
            self._publish(step, state, limits, trigger, decision)
        for target, finding in now.items():
            if target not in state.standing:
                standing = state.standing[target] = standing_of(finding)
                decision = Decision(
                    Action.BLOCK, Level.CRITICAL, standing, reason_of(finding), target
                )
                self._publish(step, state, limits, trigger, decision)

    def _publish(
        self, step: Step, state: RunState, limits: Limits, trigger: Trigger, decision: Decision
    ) -> None:
        said = (decision.action.value, decision.standing.detector, decision.standing.key)
        if any((v.action.value, v.detector, v.key) == said for v in step.verdicts):
            return  # the same event said so already: it would be the same verdict id
        step.verdicts.append(publish(self.deployment, state, limits, trigger, decision))


_RELEASED: Final = "What was refused may be tried again: the pattern no longer holds."


def _kept(name: str) -> str:
    return name if len(name) <= _SURELY_SHORT else short_name(name)


def _still(standing: Standing) -> str:
    return f"Still in force after the run was taken up again: {standing.detector}."


def _answer(finding: Finding | None, trigger: Trigger) -> Decision:
    """The answer to a gate is keyed on the event that waits: every gate gets its own."""
    if finding is not None:
        return Decision.on(Action.ANSWER, finding, reason_of(finding))
    nothing = Standing(NO_FINDING, 0, 0, f"gate:{trigger.id}", None)
    return Decision(Action.ANSWER, Level.NONE, nothing, "Nothing stands against this call.")


def _begin_anew(state: RunState) -> None:
    """A run that had ended starts again under its old id: nothing is held against it."""
    state.history = History()
    state.guard = Guard()
    state.throttle.clear()
    state.standing.clear()
    state.mutes.clear()
    state.aborted = None
