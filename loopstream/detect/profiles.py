"""Which detectors judge a call, in which order. Adding a detector is one file and a line here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, Protocol

from loopstream.detect.argument_churn import CHURN_THRESHOLD, ArgumentChurn, churn_count
from loopstream.detect.base import Detector, DetectorName, Finding, Probe
from loopstream.detect.circuit_breaker import CircuitBreaker
from loopstream.detect.generic_repeat import GenericRepeat
from loopstream.detect.known_poll import KnownPoll
from loopstream.detect.limits import Limits
from loopstream.detect.no_progress import (
    EXEC,
    Stuck,
    documented_stuck,
    failures_across,
    reference_stuck,
)
from loopstream.detect.ping_pong import PingPong
from loopstream.detect.unknown_tool import UnknownTool
from loopstream.events.verdict import Level
from loopstream.state.history import History


class Profile(Protocol):
    """A set of rules: how records are counted, who judges, and which calls are in danger."""

    name: str
    detectors: tuple[Detector, ...]

    def quiet(self, history: History, limits: Limits, signature: str) -> bool:
        """Whether no rule can speak on this call: the short way out for nearly every call."""
        ...

    def stuck(self, history: History, tool: str, signature: str) -> Stuck:
        """How often the call came to nothing."""
        ...

    def calm(self, history: History, limits: Limits) -> bool:
        """Whether no call at all can be judged critical next: the short way out, after a record."""
        ...

    def endangered(self, history: History, limits: Limits) -> Iterator[str]:
        """Signatures in the history whose next judgement may be critical: all such, and few."""
        ...

    def endangered_tools(self, history: History, limits: Limits) -> Iterator[str]:
        """Tools of which even a call that was never seen may be judged critical."""
        ...

    def annotate(self, probe: Probe, finding: Finding) -> Finding:
        """Add to a winning finding what another rule has to say about it."""
        ...


class Documented:
    """SEMANTICS sections 2 to 9."""

    name = "documented"
    detectors: tuple[Detector, ...] = (
        UnknownTool(),
        CircuitBreaker(),
        KnownPoll(),
        PingPong(),
        GenericRepeat(),
    )

    def quiet(self, history: History, limits: Limits, signature: str) -> bool:
        """No count has reached the smallest threshold."""
        floor = limits.floor
        call = history.calls.get(signature)
        return (
            (call is None or call.records < floor)
            and history.tail + 1 < floor
            and history.unknown_streak() < floor
        )

    def stuck(self, history: History, tool: str, signature: str) -> Stuck:
        """The streak that the history keeps."""
        return documented_stuck(history, signature)

    def calm(self, history: History, limits: Limits) -> bool:
        """No streak, alternation or missing tool is long enough."""
        return (
            not history.hot
            and history.tail + 1 < limits.critical
            and history.unknown_streak() < limits.unknown_tool
        )

    def endangered(self, history: History, limits: Limits) -> Iterator[str]:
        """Calls with a long enough streak, and the one that would continue a ping-pong."""
        yield from history.hot
        other = history.other()
        if other is not None and history.tail + 1 >= limits.critical:
            yield other.signature

    def endangered_tools(self, history: History, limits: Limits) -> Iterator[str]:
        """A tool that does not exist."""
        if history.unknown_streak() >= limits.unknown_tool:
            yield history.records[-1].call.tool

    def annotate(self, probe: Probe, finding: Finding) -> Finding:
        """Nothing to add."""
        return finding


class Reference(Documented):
    """SEMANTICS section 10: fixed settings, vetoes count, failed commands count together."""

    name = "reference-2026-9"
    detectors: tuple[Detector, ...] = (
        UnknownTool(),
        CircuitBreaker(),
        KnownPoll(),
        PingPong(),
        GenericRepeat(warning=False),
        ArgumentChurn(),
        GenericRepeat(critical=False),
    )

    def quiet(self, history: History, limits: Limits, signature: str) -> bool:
        """Too few records for any rule; commands may count across signatures."""
        return len(history) + 1 < limits.floor

    def stuck(self, history: History, tool: str, signature: str) -> Stuck:
        """Vetoes and equal failures of other commands count too."""
        return reference_stuck(history, tool, signature)

    def calm(self, history: History, limits: Limits) -> bool:
        """Too few records for a block."""
        return len(history) + 1 < min(limits.critical, limits.unknown_tool)

    def endangered(self, history: History, limits: Limits) -> Iterator[str]:
        """Calls repeated often enough, and every command while commands keep failing alike."""
        failing = self._failing(history, limits)
        for call in history.calls.values():
            if call.records >= limits.critical or (failing and call.tool == EXEC):
                yield call.signature
        other = history.other()
        if other is not None and history.tail + 1 >= limits.critical:
            yield other.signature

    def endangered_tools(self, history: History, limits: Limits) -> Iterator[str]:
        """Also commands that were not tried yet, while commands keep failing alike."""
        yield from super().endangered_tools(history, limits)
        if self._failing(history, limits):
            yield EXEC

    def annotate(self, probe: Probe, finding: Finding) -> Finding:
        """A poll's or a ping-pong's warning carries the signal of a churn behind it."""
        spoke_first = finding.detector in (DetectorName.KNOWN_POLL, DetectorName.PING_PONG)
        if spoke_first and finding.level is Level.WARNING and churn_count(probe) >= CHURN_THRESHOLD:
            return replace(finding, liveness=DetectorName.ARGUMENT_CHURN.value)
        return finding

    def _failing(self, history: History, limits: Limits) -> bool:
        if len(history) < limits.critical:
            return False
        return failures_across(history, UNSEEN).times >= limits.critical


# The signature of a call that no history holds.
UNSEEN: Final = ""

PROFILES: Final[Mapping[str, Profile]] = {
    profile.name: profile for profile in (Documented(), Reference())
}
