"""What a verdict says to people and models, in our words. One text a detector and level."""

from __future__ import annotations

from loopstream.detect.base import DetectorName, Finding
from loopstream.events.verdict import Level

_SHOWN = 80


def reason_of(finding: Finding) -> str:
    """Why, with the count, and what would help."""
    tool, count = _shown(finding.tool), finding.count
    critical = finding.level is Level.CRITICAL
    match finding.detector:
        case DetectorName.UNKNOWN_TOOL:
            return (
                f"The tool {tool} does not exist: {count} calls in a row were answered so. "
                "Calling it again is refused whatever the arguments; use a tool that is offered."
            )
        case DetectorName.CIRCUIT_BREAKER:
            return (
                f"This very call of {tool} came to the same result {count} times. It is refused "
                "until its result changes; do something else or report that you are stuck."
            )
        case DetectorName.KNOWN_POLL:
            said = f"Polling with {tool} gave the same answer {count} times"
            if critical:
                return f"{said}. It is refused: what it waits for is not moving."
            return f"{said}: check whether what it waits for is still alive, or wait longer."
        case DetectorName.PING_PONG:
            with_tool = _shown(finding.paired_tool or finding.tool)
            said = f"{tool} and {with_tool} alternate for {count} calls"
            if critical:
                return f"{said} and neither result changes. The next one is refused."
            return f"{said}: make sure that each turn brings something new."
        case DetectorName.GENERIC_REPEAT:
            if critical:
                return (
                    f"{tool} was called {count} times with the same arguments and the same "
                    "result. It is refused until something changes."
                )
            return (
                f"{tool} was called {count} times with the same arguments: if that does not "
                "bring you forward, change the approach."
            )
        case DetectorName.ARGUMENT_CHURN:
            return (
                f"{count} calls of {tool} in rotation over a few arguments, none with any effect: "
                "change the approach."
            )
        case DetectorName.GUARD:
            return (
                f"After its context was compacted the run repeated the same call of {tool} with "
                f"the same result {count} times. The run is stopped."
            )


def _shown(tool: str) -> str:
    return tool if len(tool) <= _SHOWN else tool[:_SHOWN] + "..."
