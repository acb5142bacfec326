"""What an agent hears before a tool call: `Allow`, `Warn`, `Block`, or the end of its run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

from loopstream.errors import EXIT_VERDICT, LoopstreamError
from loopstream.events import Verdict
from loopstream.sdk.prints import Asked

TOOL_LOOP: Final = "tool-loop"
UNREACHABLE: Final = "loopstream-unreachable"


class Call(NamedTuple):
    """One call that was asked about; hand it to ``after_call`` with what came of it.

    Attributes:
        event: id of the event that reported the call.
        tool: its name, normalised.
        call_id: the model's id of the call.
        batch: the model message that the call was part of.
        signature: tool and digest of the arguments, as in verdicts.
        asked: what outcomes need to know of the arguments.
        args: the arguments as others may see them: redacted JSON text, with ``capture="full"``.
        oversize: the arguments are over the wire's bounds.
        refused: the call was not to be made.
    """

    event: str
    tool: str
    call_id: str | None
    batch: str | None
    signature: str
    asked: Asked
    args: str | None = None
    oversize: bool = False
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Allow:
    """Go on: nothing is known against the call."""

    allowed: ClassVar[bool] = True

    call: Call


@dataclass(frozen=True, slots=True)
class Warn:
    """Go on, but the run looks stuck; ``reason`` is worth showing to the model.

    ``verdict`` is the id of the verdict that says so; each is handed out once.
    """

    allowed: ClassVar[bool] = True

    call: Call
    reason: str
    detector: str
    count: int
    verdict: str


@dataclass(frozen=True, slots=True)
class Block:
    """Don't make the call; give ``result`` to the model in place of the tool's.

    ``detector``, ``count`` and ``verdict`` are None if nobody decided: loopstream could not be
    asked, and the runner fails closed.
    """

    allowed: ClassVar[bool] = False

    call: Call
    reason: str
    detector: str | None
    count: int | None
    verdict: str | None
    result: dict[str, Any]


Decision = Allow | Warn | Block


class RunAborted(LoopstreamError):  # noqa: N818 - it says what happened to the run
    """The run was ended by loopstream. Stop the agent; each further ``before_call`` raises again.

    Attributes:
        run: the run's id, or None for the "no run" scope.
        reason: why, in words that may be shown to people.
        detector: what found it, such as ``compaction_loop_persisted``.
        count: how often it was seen.
        tool: the tool that was stuck.
        verdict: id of the verdict.
    """

    code = "run_aborted"
    exit_code = EXIT_VERDICT

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.reason, where=verdict.run, hint="Stop this run's agent.")
        self.run = verdict.run
        self.reason = verdict.reason
        self.detector = verdict.detector
        self.count = verdict.count
        self.tool = verdict.tool
        self.verdict = verdict.id


class ToolBlocked(LoopstreamError):  # noqa: N818 - as above
    """A wrapped tool was not run (``@run.tool(on_block="raise")``)."""

    code = "tool_blocked"
    exit_code = EXIT_VERDICT

    def __init__(self, decision: Block) -> None:
        super().__init__(decision.reason, where=decision.call.tool)
        self.decision = decision


def blocked_result(reason: str, denied: str = TOOL_LOOP) -> dict[str, Any]:
    """The tool result that the model gets in place of a refused call's.

    The shape is the reference's; outcomes of this shape are known for what they are.
    """
    return {
        "content": [{"type": "text", "text": reason}],
        "details": {"status": "blocked", "deniedReason": denied, "reason": reason},
    }


def is_blocked_result(result: object) -> bool:
    """Whether a result is that of a call refused as part of a loop."""
    details = result.get("details") if isinstance(result, dict) else None
    return isinstance(details, dict) and details.get("deniedReason") == TOOL_LOOP


def warning(call: Call, verdict: Verdict) -> Warn:
    """A `Warn` that says what the verdict says."""
    return Warn(call, verdict.reason, verdict.detector, verdict.count, verdict.id)


def refusal(call: Call, verdict: Verdict) -> Block:
    """A `Block` that says what the verdict says."""
    reason = verdict.reason
    refused = call._replace(refused=True)
    return Block(
        refused, reason, verdict.detector, verdict.count, verdict.id, blocked_result(reason)
    )


def closed(call: Call, reason: str) -> Block:
    """A `Block` because loopstream could not be asked."""
    refused = call._replace(refused=True)
    return Block(refused, reason, None, None, None, blocked_result(reason, UNREACHABLE))
