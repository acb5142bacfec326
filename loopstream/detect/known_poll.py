"""`known_poll_no_progress`: a status poll that always answers the same."""

from __future__ import annotations

from loopstream.detect.base import DetectorName, Finding, Probe
from loopstream.detect.no_progress import stuck_finding
from loopstream.events.verdict import Level


class KnownPoll:
    """Reacts to polls of a command's status (``command_status``, ``process`` poll or log).

    A poll that shows any progress is silent for ever; so is one whose outcomes are not
    reported. Its key holds the result, so a new result is warned of anew. For other calls see
    `generic_repeat`. Costs O(1).

    Source: SEMANTICS section 7, rules 3 and 4.
    """

    name = DetectorName.KNOWN_POLL

    def find(self, probe: Probe) -> Finding | None:
        """Critical, else warning, by the two thresholds."""
        limits = probe.limits
        if not probe.poll or not limits.known_poll or probe.stuck < limits.warning:
            return None
        if probe.stuck >= limits.critical:
            return stuck_finding(probe, Level.CRITICAL, self.name, limits.critical, "poll")
        return stuck_finding(probe, Level.WARNING, self.name, limits.warning, "poll")
