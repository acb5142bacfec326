"""`ping_pong`: two calls in turns, neither of them leading anywhere."""

from __future__ import annotations

from loopstream.detect.base import DetectorName, Finding, Probe
from loopstream.events.verdict import Level
from loopstream.state.run import Target


class PingPong:
    """Reacts to a call that would continue a strict alternation of two signatures.

    Warns on the alternation alone; blocks only with evidence: everything settled, and each of
    the two with one single result. Its warning hides a block of `generic_repeat` on the same
    call. Cycles of three or more calls are not recognised. Costs O(1).

    Source: SEMANTICS section 7, rules 5 and 6.
    """

    name = DetectorName.PING_PONG

    def find(self, probe: Probe) -> Finding | None:
        """Critical with evidence, else warning; the count includes the call itself."""
        history, limits = probe.history, probe.limits
        count = history.tail + 1
        if not limits.ping_pong or count < limits.warning:
            return None
        other = history.other()
        if other is None or other.signature != probe.signature:
            return None
        last = history.records[-1].call
        critical = count >= limits.critical and history.tail_settled_alike
        key = "pingpong:" + "|".join(sorted((last.signature, other.signature)))
        return Finding(
            Level.CRITICAL if critical else Level.WARNING,
            self.name,
            count,
            limits.critical if critical else limits.warning,
            key,
            probe.tool,
            target=Target(signature=probe.signature),
            subject=key,
            paired_tool=last.tool,
        )
