"""`argument_churn`: a few calls of one tool in rotation, all failing the same way."""

from __future__ import annotations

from loopstream.detect.base import DetectorName, Finding, Probe
from loopstream.events.verdict import Level
from loopstream.state.run import Target

CHURN_THRESHOLD = 10
_MIN_SIGNATURES = 2
_MIN_EACH = 3


class ArgumentChurn:
    """Reacts to one tool called with a handful of arguments in turns, every outcome the same.

    Only outcomes marked as no progress count. It never blocks: the warning tells the runner's
    stall watchdog that the run gets nowhere. For one set of arguments see `generic_repeat`.
    Walks the newest records of the tool; profile ``reference-2026-9`` fixes the history at 30.

    Source: SEMANTICS section 10.
    """

    name = DetectorName.ARGUMENT_CHURN

    def find(self, probe: Probe) -> Finding | None:
        """Warning from ten records in rotation on."""
        if probe.call is None or probe.call.records < _MIN_EACH:
            return None
        count = churn_count(probe)
        if count < CHURN_THRESHOLD:
            return None
        key = f"argument-churn:{probe.tool}"
        return Finding(
            Level.WARNING,
            self.name,
            count,
            CHURN_THRESHOLD,
            key,
            probe.tool,
            target=Target(tool=probe.tool),
            subject=key,
            liveness=self.name.value,
        )


def churn_count(probe: Probe) -> int:
    """Records in rotation behind a call; 0 when the pattern does not hold."""
    outcomes: dict[str, str] = {}
    counts: dict[str, int] = {}
    for record in reversed(probe.history.records):
        if record.call.tool != probe.tool:
            break
        if record.result is None:
            continue
        signature = record.call.signature
        if not record.no_progress or outcomes.setdefault(signature, record.result) != record.result:
            break
        counts[signature] = counts.get(signature, 0) + 1
    holds = (
        len(counts) >= _MIN_SIGNATURES
        and min(counts.values()) >= _MIN_EACH
        and len(set(outcomes.values())) == 1
        and probe.signature in counts
    )
    return sum(counts.values()) if holds else 0
