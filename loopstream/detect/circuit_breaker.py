"""`global_circuit_breaker`: the last resort on one call that never gets anywhere."""

from __future__ import annotations

from loopstream.detect.base import DetectorName, Finding, Probe
from loopstream.detect.no_progress import stuck_finding
from loopstream.events.verdict import Level


class CircuitBreaker:
    """Reacts to one call repeated with one result, polls included, whatever is switched off.

    Needs a history of at least its threshold. `generic_repeat` and `known_poll_no_progress`
    normally speak long before. Costs O(1).

    Source: SEMANTICS section 7, rule 2.
    """

    name = DetectorName.CIRCUIT_BREAKER

    def find(self, probe: Probe) -> Finding | None:
        """Critical from ``globalCircuitBreakerThreshold`` equal outcomes on."""
        if probe.stuck < probe.limits.breaker:
            return None
        return stuck_finding(probe, Level.CRITICAL, self.name, probe.limits.breaker, "global")
