"""`generic_repeat`: the same call again and again."""

from __future__ import annotations

from loopstream.detect.base import DetectorName, Finding, Probe
from loopstream.detect.no_progress import stuck_finding
from loopstream.events.verdict import Level
from loopstream.state.run import Target


class GenericRepeat:
    """Reacts to a call other than a poll that is repeated.

    Blocks on equal outcomes; warns on equal arguments alone, through real progress too. For
    polls see `known_poll_no_progress`. Costs O(1).

    Args:
        critical: speak at ``criticalThreshold`` equal outcomes.
        warning: speak at ``warningThreshold`` records, settled or not.

    Source: SEMANTICS section 7, rules 7 and 8. Profile ``reference-2026-9`` has another rule
    between the two, so each can be switched off.
    """

    name = DetectorName.GENERIC_REPEAT

    def __init__(self, *, critical: bool = True, warning: bool = True) -> None:
        self._critical = critical
        self._warning = warning

    def find(self, probe: Probe) -> Finding | None:
        """Critical by outcome, else warning by repetition."""
        limits = probe.limits
        if probe.poll or not limits.generic_repeat:
            return None
        if self._critical and probe.stuck >= limits.critical:
            return stuck_finding(probe, Level.CRITICAL, self.name, limits.critical, "generic")
        if self._warning and probe.call is not None and probe.call.records >= limits.warning:
            return Finding(
                Level.WARNING,
                self.name,
                probe.call.records,
                limits.warning,
                f"generic:{probe.tool}:{probe.signature}",
                probe.tool,
                target=Target(signature=probe.signature),
                subject=f"repeat:{probe.signature}",
            )
        return None
