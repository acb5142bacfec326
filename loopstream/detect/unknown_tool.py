"""`unknown_tool_repeat`: the agent keeps calling a tool that does not exist."""

from __future__ import annotations

from loopstream.detect.base import DetectorName, Finding, Probe
from loopstream.events.verdict import Level
from loopstream.state.run import Target


class UnknownTool:
    """Reacts to calls of one tool whose newest outcomes in a row name the same missing tool.

    Arguments do not matter: changing them does not make the tool exist. A pending call, a
    success, another tool or another missing name ends the streak. Only blocks, never warns;
    switches do not turn it off. For other repeated errors see `generic_repeat`. Costs O(1).

    Source: SEMANTICS section 7, rule 1.
    """

    name = DetectorName.UNKNOWN_TOOL

    def find(self, probe: Probe) -> Finding | None:
        """Critical from ``unknownToolThreshold`` records on."""
        count = probe.history.unknown_streak()
        if count < probe.limits.unknown_tool or count == 0:
            return None
        newest = probe.history.records[-1]
        if newest.call.tool != probe.tool:
            return None
        key = f"unknown-tool:{probe.tool}:{newest.unknown_tool}"
        return Finding(
            Level.CRITICAL,
            self.name,
            count,
            probe.limits.unknown_tool,
            key,
            probe.tool,
            target=Target(tool=probe.tool),
            subject=key,
        )
