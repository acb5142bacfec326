"""Public: drive the engine by hand, without Kafka and without a clock.

`SessionDriver` plays the steps of the shared vectors (one session, several runs, one shared
history) and is what conformance checks. Use it to test an integration against the documented
behaviour.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from loopstream.detect.base import Finding
from loopstream.detect.limits import Limits
from loopstream.engine import Engine, Step
from loopstream.events import (
    CallFingerprint,
    Compaction,
    Disposition,
    OutcomeFingerprint,
    RunEvent,
    ToolCall,
    ToolOutcome,
)
from loopstream.events.making import altered
from loopstream.events.text import trim
from loopstream.fingerprint.calls import fingerprint_call, signature
from loopstream.fingerprint.canonical import MISSING
from loopstream.fingerprint.digests import call_digests, outcome_digests
from loopstream.fingerprint.outcomes import (
    OutcomePrint,
    fingerprint_outcome,
)
from loopstream.policy.deployment import Deployment, Profile
from loopstream.policy.verdicts import Position
from loopstream.state.history import History
from loopstream.state.run import RunState
from loopstream.state.session import SessionHistories

# What is played is ours, and need not be validated: copies are altered.
_ANY_OUTCOME: Final = ToolOutcome(v=1, type="tool_outcome", time=0, tool="any")
_NO_CALL_PRINT: Final = CallFingerprint()
_NO_OUTCOME_PRINT: Final = OutcomeFingerprint()


@dataclass(frozen=True, slots=True)
class Played:
    """What one step of a session came to."""

    step: Step
    guarded: bool = False
    """The run had a compaction, and this outcome was recorded: the guard has looked at it."""
    args_hash: str | None = None
    outcome: OutcomePrint | None = None

    @property
    def finding(self) -> Finding | None:
        """The judgement of a call."""
        return self.step.judgement


class SessionDriver:
    """One session as the reference keeps it: all runs in one history, one throttle.

    Args:
        limits: settings in force.
        profile: whose rules.
        veto: a call judged critical is not entered (enforce mode); else every call is.
    """

    def __init__(
        self, limits: Limits, profile: Profile = "documented", *, veto: bool = False
    ) -> None:
        deployment = Deployment(prefix="test", profile=profile, announce="reference")
        self._engine = Engine(deployment, self._retain)
        self._limits = limits
        self._profile = profile
        how: Disposition = "gated" if veto else "executed"
        self._any_call = ToolCall(v=1, type="tool_call", time=0, tool="any", disposition=how)
        self._session = SessionHistories()
        self._runs: dict[str, RunState] = {}
        self._throttle: dict[bytes, int] = {}
        self._compacted: set[str] = set()
        self._played = 0

    @property
    def history_length(self) -> int:
        """Records in the session's history."""
        return len(self._session)

    def call(
        self,
        tool: str,
        args: object = MISSING,
        *,
        run: str | None = None,
        call_id: str | None = None,
    ) -> Played:
        """Judge a call, then enter it."""
        digests = call_digests(fingerprint_call(tool, args))
        event = altered(
            self._any_call,
            run=run,
            tool=tool,
            call_id=call_id,
            fp=altered(_NO_CALL_PRINT, documented=digests, reference=digests),
        )
        return Played(self._step(event), args_hash=signature(tool, digests.args))

    def outcome(
        self,
        tool: str,
        args: object = MISSING,
        *,
        run: str | None = None,
        call_id: str | None = None,
        result: object = MISSING,
        error: object = MISSING,
    ) -> Played:
        """Settle a call."""
        seen = fingerprint_outcome(tool, args, result=result, error=error, profile=self._profile)
        digests = outcome_digests(seen)
        event = altered(
            _ANY_OUTCOME,
            run=run,
            tool=tool,
            call_id=call_id,
            fp=altered(_NO_OUTCOME_PRINT, documented=digests, reference=digests),
        )
        step = self._step(event)
        guarded = step.recorded and seen.digest is not None and _scope(run) in self._compacted
        return Played(step, guarded=guarded, outcome=seen)

    def compaction(self, *, run: str | None = None) -> Played:
        """The run's context was compacted, and its prompt is tried again."""
        self._compacted.add(_scope(run))
        event = Compaction(v=1, type="compaction", run=run, time=0, retried=True)
        return Played(self._step(event))

    def play(self, step: dict[str, Any]) -> Played:
        """Play one step in the form of the shared vectors."""
        run = step.get("run")
        if step["op"] == "compaction":
            return self.compaction(run=run)
        tool, args, call_id = step["tool"], step.get("args", MISSING), step.get("callId")
        if step["op"] == "call":
            return self.call(tool, args, run=run, call_id=call_id)
        return self.outcome(
            tool,
            args,
            run=run,
            call_id=call_id,
            result=step.get("result", MISSING),
            error=step.get("error", MISSING),
        )

    def _step(self, event: RunEvent) -> Step:
        self._played += 1
        at = Position(partition=0, offset=self._played, place=0, append_time=0)
        return self._engine.step(self._run(event.run), event, self._limits, at)

    def _run(self, run: str | None) -> RunState:
        scope = _scope(run)
        state = self._runs.get(scope)
        if state is None:
            state = self._runs[scope] = RunState(scope, partition=0)
            state.history = self._session.of(scope)
            state.throttle = self._throttle  # one for the whole session
        return state

    def _retain(self, history: History, size: int, *, grown: bool) -> None:
        if grown:
            self._session.grew(history, size)


def _scope(run: str | None) -> str:
    return trim(run) if run else ""
