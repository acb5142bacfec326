"""One run, without Kafka: what its agent says goes to the outbox, what comes back decides."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from loopstream.events import Action, Verdict
from loopstream.events.context import MAX_REASON
from loopstream.fingerprint.canonical import MISSING
from loopstream.fingerprint.extended.calls import MESSAGE_TOOL
from loopstream.fingerprint.profiles import EXTENDED, REFERENCE
from loopstream.sdk.counters import Counters
from loopstream.sdk.decisions import (
    Allow,
    Block,
    Call,
    Decision,
    RunAborted,
    blocked_result,
    closed,
    is_blocked_result,
    refusal,
    warning,
)
from loopstream.sdk.gate import Gate
from loopstream.sdk.names import printable
from loopstream.sdk.options import Options
from loopstream.sdk.outbox import Outbox
from loopstream.sdk.prints import Asked
from loopstream.sdk.scribe import NOTHING_SPENT, Scribe, Spent
from loopstream.sdk.standing import Standing, is_refusal, is_warning
from loopstream.sdk.stream import Fields, Stream
from loopstream.sdk.values import NOTHING, Json, outcome_json, to_json

Status = Literal["completed", "failed", "aborted", "cancelled"]

_UNKNOWN: Final = Asked(b"", poll=False, seen=MISSING)
_NOT_REACHED: Final = "loopstream can't be reached, and this runner fails closed."
_NO_ANSWER: Final = "loopstream did not answer in time, and this runner fails closed."


@dataclass(frozen=True, slots=True)
class Kit:
    """What all runs of a runner share.

    Attributes:
        now_ms: the wall clock, in ms since the epoch.
        reachable: whether Kafka is, as far as the runner knows.
    """

    options: Options
    scribe: Scribe
    outbox: Outbox
    counters: Counters
    now_ms: Callable[[], int]
    reachable: Callable[[], bool]


class RunSession:
    """The sync and the asyncio `Run` are faces of this. Safe to use from any thread.

    Nothing in here waits for anything, and nothing but `RunAborted` is raised into the agent.
    """

    def __init__(self, kit: Kit, stream: Stream, run: str | None) -> None:
        self.stream = stream
        self.run = run
        self.ended = False
        self._kit = kit
        self._lock = threading.Lock()
        self._standing = Standing()
        self._gates: dict[str, Gate] = {}

    # Before a call.

    def ask(
        self,
        tool: str,
        args: object,
        call_id: str | None,
        batch: str | None,
        wait: float | None,
        spent: Spent = NOTHING_SPENT,
    ) -> Decision | Gate:
        """Report a call that is about to be made, and decide it or open a gate.

        Raises:
            RunAborted: the run was ended by a verdict.
        """
        self._raise_if_aborted()
        if self.ended:
            self._kit.counters.add("calls_after_end")
            return Allow(self._unreported(tool))
        try:
            return self._ask(tool, args, call_id, batch, wait, spent)
        except Exception as error:  # noqa: BLE001 - whatever an agent hands over must not stop it
            self._kit.scribe.trouble("before_call", error)
            call = self._unreported(tool)
            return Allow(call) if self._kit.options.fail == "open" else closed(call, _NOT_REACHED)

    def say(self, text: str, spent: Spent) -> Decision:
        """Report a message that makes no call, and decide it; only profile ``extended`` looks.

        Raises:
            RunAborted: the run was ended by a verdict.
        """
        if EXTENDED in self._kit.options.profiles:
            decision = self.ask(MESSAGE_TOOL, {"text": text}, None, None, 0.0, spent)
            if not isinstance(decision, Gate):
                return decision
        self._raise_if_aborted()
        return Allow(self._unreported(MESSAGE_TOOL))

    def settle(self, gate: Gate) -> Decision:
        """Decide a gated call, whose gate was lifted or whose time is up.

        Raises:
            RunAborted: the run was ended while the call waited.
        """
        self.forget(gate)
        self._raise_if_aborted()
        call, answer = gate.call, gate.answer
        if answer is None:
            return self._unanswered(call)
        if is_refusal(answer):
            return self._refuse(call, answer)
        if is_warning(answer):
            with self._lock:
                self._standing.told(call.event)
            self._kit.counters.add("warns")
            return warning(call, answer)
        return Allow(call)

    def forget(self, gate: Gate) -> None:
        """Nobody waits at this gate any more."""
        with self._lock:
            self._gates.pop(gate.call.event, None)

    # After it.

    def report(
        self,
        asked: Call | Decision,
        result: object = MISSING,
        error: object = MISSING,
        executed: bool = True,
    ) -> None:
        """Report what came of a call."""
        call = asked if isinstance(asked, Call) else asked.call
        if self.ended or not call.event or (call.refused and is_blocked_result(result)):
            # What a refused call gave the model is no outcome of the tool.
            return
        try:
            self._report(call, outcome_json(result), outcome_json(error), executed)
        except Exception as trouble:  # noqa: BLE001 - as in ask
            self._kit.scribe.trouble("after_call", trouble)

    def compacted(
        self,
        *,
        succeeded: bool,
        retried: bool,
        reason: str | None,
        tokens_before: int | None,
        tokens_after: int | None,
    ) -> None:
        """Report that the run's context was compacted."""
        self._tell(
            "compaction",
            succeeded=succeeded,
            retried=retried,
            reason=_short(reason),
            tokens_before=tokens_before,
            tokens_after=tokens_after,
        )

    def started(self, resumed: bool) -> None:
        """Report that the run begins, or is taken up again."""
        self._tell("run_started", resumed=resumed or None)

    def end(self, status: Status, reason: str | None = None) -> bool:
        """Report the run's end; only the first one counts. False if there was one."""
        with self._lock:
            if self.ended:
                return False
            self.ended = True
            gates = self._take_gates()
        _lift_all(gates)
        self._tell("run_ended", status=status, reason=_short(reason))
        return True

    # What comes back.

    def receive(self, verdict: Verdict) -> None:
        """Obey a verdict on this run."""
        gates: list[Gate] = []
        answered: Gate | None = None
        late = False
        with self._lock:
            seen = self._standing.apply(verdict)
            evicted, self._standing.evicted = self._standing.evicted, 0
            if verdict.action is Action.ANSWER and seen != "duplicate":
                answered = self._gates.get(verdict.evidence.event)
                late = answered is None
            elif verdict.action is Action.ABORT and seen == "new":
                gates = self._take_gates()
        self._count(verdict, seen, late)
        self._kit.counters.add("verdicts_evicted", evicted)
        _lift_all(gates)
        if answered is not None:
            answered.lift(verdict)

    def _count(self, verdict: Verdict, seen: str, late: bool) -> None:
        counters = self._kit.counters
        counters.add("verdicts_received")
        if seen != "new":
            counters.add(f"verdicts_{seen}")
        elif verdict.action is Action.ABORT:
            counters.add("aborts")
        if late:
            counters.add("answers_late")

    # How a call is decided.

    def _ask(
        self,
        tool: str,
        args: object,
        call_id: str | None,
        batch: str | None,
        wait: float | None,
        spent: Spent,
    ) -> Decision | Gate:
        options = self._kit.options
        call, fields = self._kit.scribe.call(tool, args, call_id, batch, spent)
        reachable = options.fail == "open" or self._kit.reachable()
        with self._lock:
            call = Call(self.stream.next_id(), *call[1:])
            step = self._decide(call, options.wait if wait is None else wait, reachable)
            if isinstance(step, Gate):
                fields["disposition"] = "gated"
                self._queue("tool_call", fields, urgent=True)
                self._gates[call.event] = step
            else:
                if isinstance(step, Block):
                    fields["disposition"] = "refused"
                self._queue("tool_call", fields)
        if isinstance(step, Block) and step.verdict is not None:
            self._veto(step)
        return step

    def _decide(self, call: Call, wait: float, reachable: bool) -> Decision | Gate:
        standing, counters = self._standing, self._kit.counters
        standing.remember(call.event, call.tool, call.signature)
        verdict = standing.block_on(call.tool, call.signature)
        if verdict is not None:
            counters.add("blocks")
            return refusal(call, verdict)
        if not reachable:
            counters.add("blocks")
            return closed(call, _NOT_REACHED)
        if wait > 0:
            return Gate(call, wait)
        advice = standing.warning_on(call.tool, call.signature)
        if advice is None:
            return Allow(call)
        counters.add("warns")
        return warning(call, advice)

    def _unanswered(self, call: Call) -> Decision:
        kit = self._kit
        kit.counters.add("gate_timeouts")
        with self._lock:
            verdict = self._standing.block_on(call.tool, call.signature)
        if verdict is not None:
            return self._refuse(call, verdict)
        if kit.options.fail == "open":
            return Allow(call)
        kit.counters.add("blocks")
        block = closed(call, _NO_ANSWER)
        self.report(block.call, executed=False)
        return block

    def _refuse(self, call: Call, verdict: Verdict) -> Block:
        self._kit.counters.add("blocks")
        block = refusal(call, verdict)
        self._veto(block)
        return block

    def _veto(self, block: Block) -> None:
        """The reference's newer profile records vetoes; the documented one drops them unread."""
        if REFERENCE in self._kit.options.profiles:
            veto = to_json(blocked_result(block.reason))
            self._report(block.call, veto, NOTHING, executed=False)

    # How it is told.

    def _report(self, call: Call, result: Json, error: Json, executed: bool) -> None:
        fields = self._kit.scribe.outcome(call, result, error, executed)
        with self._lock:
            self.stream.next_id()
            self._queue("tool_outcome", fields)

    def _tell(self, kind: str, **fields: Any) -> None:
        given = {name: value for name, value in fields.items() if value is not None}
        try:
            with self._lock:
                self.stream.next_id()
                self._queue(kind, given)
        except Exception as error:  # noqa: BLE001 - as in ask
            self._kit.scribe.trouble(kind, error)

    def _queue(self, kind: str, fields: Fields, urgent: bool = False) -> None:
        """Under the lock: numbers go into the outbox in their order."""
        time, seq = self._kit.now_ms(), self.stream.seq
        packed = self.stream.pack(kind, time, fields)
        self._kit.outbox.add(self.stream, seq, time, packed, urgent)

    def _take_gates(self) -> list[Gate]:
        gates = list(self._gates.values())
        self._gates.clear()
        return gates

    def _raise_if_aborted(self) -> None:
        verdict = self._standing.abort
        if verdict is not None:
            raise RunAborted(verdict)

    def _unreported(self, tool: str) -> Call:
        return Call("", tool, None, None, "", _UNKNOWN)


def _lift_all(gates: list[Gate]) -> None:
    for gate in gates:
        gate.lift(None)


def _short(reason: str | None) -> str | None:
    return None if reason is None else printable(reason)[:MAX_REASON]
