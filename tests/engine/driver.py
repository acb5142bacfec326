"""Plays naive steps into the product's engine, with one history a session or one a run."""

from __future__ import annotations

from loopstream.detect.limits import Limits
from loopstream.engine import Engine, Step, retain_per_run
from loopstream.events import (
    CallDigests,
    CallFingerprint,
    Compaction,
    OutcomeDigests,
    OutcomeFingerprint,
    RunEvent,
    ToolCall,
    ToolOutcome,
)
from loopstream.events.text import trim
from loopstream.events.tool import Disposition, RecordKind
from loopstream.policy.deployment import Announce, Deployment, Profile
from loopstream.policy.verdicts import Position
from loopstream.state.history import History
from loopstream.state.run import RunState
from loopstream.state.session import SessionHistories
from tests.engine.naive import Call, Compacted, NaiveStep, Outcome

PROFILE: dict[bool, Profile] = {False: "documented", True: "reference-2026-9"}


def scope_of(run: str | None) -> str:
    return trim(run or "")


def event_of(
    step: NaiveStep, number: int, *, latest: bool, disposition: Disposition = "executed"
) -> RunEvent:
    """The event that reports a step."""
    name = f"e{number}"
    if isinstance(step, Compacted):
        return Compaction(v=1, type="compaction", id=name, run=step.run, time=number, retried=True)
    args = bytes.fromhex(step.signature[-64:])
    if isinstance(step, Call):
        call = CallDigests(args=args, poll=step.poll)
        return ToolCall(
            v=1,
            type="tool_call",
            id=name,
            run=step.run,
            time=number,
            tool=step.tool,
            call_id=step.call_id,
            disposition=disposition,
            fp=CallFingerprint(reference=call) if latest else CallFingerprint(documented=call),
        )
    outcome = _digests(step, args)
    return ToolOutcome(
        v=1,
        type="tool_outcome",
        id=name,
        run=step.run,
        time=number,
        tool=step.tool,
        call_id=step.call_id,
        fp=OutcomeFingerprint(reference=outcome)
        if latest
        else OutcomeFingerprint(documented=outcome),
    )


def _digests(step: Outcome, args: bytes) -> OutcomeDigests:
    text = step.result
    result = None if text is None else bytes.fromhex(text.removeprefix("error:"))
    failed = text is not None and text.startswith("error:")
    failure = None if step.failure is None else bytes.fromhex(step.failure)
    kind: RecordKind | None = "terminal-exec-failure" if failure is not None else None
    return OutcomeDigests(
        args=args,
        poll=step.poll,
        result=result,
        failed=failed,
        unknown_tool=step.unknown,
        kind="tool-loop-veto" if step.veto else kind,
        no_progress=step.no_progress,
        failure=failure,
    )


class Driver:
    """The product behind the interface of the naive engine's test.

    Args:
        session: one shared history and throttle for all runs, as the reference keeps it.
        veto: calls are gated, else executed.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        latest: bool = False,
        veto: bool = False,
        session: bool = False,
        announce: Announce = "reference",
    ) -> None:
        self.limits = limits
        self.latest = latest
        self.veto = veto
        self.states: dict[str, RunState] = {}
        self._session = SessionHistories() if session else None
        self._throttle: dict[bytes, int] = {}
        self._number = 0
        deployment = Deployment("test", profile=PROFILE[latest], announce=announce)
        self.engine = Engine(deployment, self._retain if session else retain_per_run)

    def play(self, step: NaiveStep, disposition: Disposition | None = None) -> Step:
        self._number += 1
        how = disposition or ("gated" if self.veto else "executed")
        event = event_of(step, self._number, latest=self.latest, disposition=how)
        return self.engine.step(self.state(step.run), event, self.limits, self.at)

    @property
    def at(self) -> Position:
        return Position(0, self._number, 0, self._number)

    def state(self, run: str | None) -> RunState:
        scope = scope_of(run)
        state = self.states.get(scope)
        if state is None:
            state = self.states[scope] = RunState(scope, 0)
            if self._session is not None:
                state.history = self._session.of(scope)
                state.throttle = self._throttle
        return state

    def history_length(self, run: str | None) -> int:
        return len(self._session) if self._session is not None else len(self.state(run).history)

    def _retain(self, history: History, size: int, *, grown: bool) -> None:
        if grown and self._session is not None:
            self._session.grew(history, size)
