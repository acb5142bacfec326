"""What a detector is asked, and what it may answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from loopstream.detect.limits import Limits
from loopstream.events.verdict import Level
from loopstream.state.history import History
from loopstream.state.record import Call
from loopstream.state.run import Target


class DetectorName(StrEnum):
    """Detectors by their documented names: in verdicts, metrics, logs and reports."""

    UNKNOWN_TOOL = "unknown_tool_repeat"
    CIRCUIT_BREAKER = "global_circuit_breaker"
    KNOWN_POLL = "known_poll_no_progress"
    PING_PONG = "ping_pong"
    GENERIC_REPEAT = "generic_repeat"
    ARGUMENT_CHURN = "argument_churn"
    GUARD = "compaction_loop_persisted"


@dataclass(slots=True)
class Probe:
    """One call to be judged against a history that it is not part of yet.

    ``stuck`` counts the call's settled records without progress (N in SEMANTICS section 7),
    ``outcome`` is the result that they share, ``across`` tells that other calls count with it.
    """

    tool: str
    signature: str
    poll: bool
    history: History
    limits: Limits
    call: Call | None
    stuck: int = 0
    outcome: str | None = None
    across: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """What one detector sees in one call.

    ``key`` is the reference's warning key. ``subject`` names what is stuck, independent of the
    detector and its level: an operator's release mutes findings about it. ``target`` is what a
    block on this finding covers.
    """

    level: Level
    detector: DetectorName
    count: int
    threshold: int
    key: str
    tool: str
    target: Target
    subject: str
    paired_tool: str | None = None
    liveness: str | None = None
    """Only for the runner's stall watchdog (profile ``reference-2026-9``)."""
    capped: bool = False
    """It would be critical, but its detector only warns (`Rollout`)."""


class Detector(Protocol):
    """One rule. Stateless: what it counts is kept in the history."""

    name: DetectorName

    def find(self, probe: Probe) -> Finding | None:
        """Judge one call; None when the rule has nothing to say."""
        ...
