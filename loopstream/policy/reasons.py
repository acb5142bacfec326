"""What a verdict says to people and models, in our words. One text a detector and level."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from loopstream.detect.base import DetectorName, Finding
from loopstream.detect.extended.registry import detectors
from loopstream.events.verdict import Level
from loopstream.state.run import Said

_SHOWN: Final = 80
_PAIRED: Final = 240

_TEXTS: Final[Mapping[tuple[str, str], str]] = {
    (DetectorName.UNKNOWN_TOOL, Level.CRITICAL): (
        "The tool {tool} does not exist: {count} calls in a row were answered so. "
        "Calling it again is refused whatever the arguments; use a tool that is offered."
    ),
    (DetectorName.UNKNOWN_TOOL, Level.WARNING): (
        "The tool {tool} does not exist: {count} calls in a row were answered so. Changing the "
        "arguments does not help; use a tool that is offered."
    ),
    (DetectorName.CIRCUIT_BREAKER, Level.CRITICAL): (
        "This very call of {tool} came to the same result {count} times. It is refused until "
        "its result changes; do something else or report that you are stuck."
    ),
    (DetectorName.CIRCUIT_BREAKER, Level.WARNING): (
        "This very call of {tool} came to the same result {count} times. Do something else or "
        "report that you are stuck."
    ),
    (DetectorName.KNOWN_POLL, Level.CRITICAL): (
        "Polling with {tool} gave the same answer {count} times. It is refused: what it waits "
        "for is not moving."
    ),
    (DetectorName.KNOWN_POLL, Level.WARNING): (
        "Polling with {tool} gave the same answer {count} times: check whether what it waits "
        "for is still alive, or wait longer."
    ),
    (DetectorName.PING_PONG, Level.CRITICAL): (
        "{pair} alternate for {count} calls and neither result changes. The next one is refused."
    ),
    (DetectorName.PING_PONG, Level.WARNING): (
        "{pair} alternate for {count} calls: make sure that each turn brings something new."
    ),
    (DetectorName.GENERIC_REPEAT, Level.CRITICAL): (
        "{tool} was called {count} times with the same arguments and the same result. It is "
        "refused until something changes."
    ),
    (DetectorName.GENERIC_REPEAT, Level.WARNING): (
        "{tool} was called {count} times with the same arguments: if that does not bring you "
        "forward, change the approach."
    ),
    (DetectorName.ARGUMENT_CHURN, Level.WARNING): (
        "{count} calls of {tool} in rotation over a few arguments, none with any effect: change "
        "the approach."
    ),
    (DetectorName.GUARD, Level.CRITICAL): (
        "After its context was compacted the run repeated the same call of {tool} with the same "
        "result {count} times. The run is stopped."
    ),
    (DetectorName.GUARD, Level.WARNING): (
        "After the context was compacted the same call of {tool} came to the same result {count} "
        "times: change the approach."
    ),
}


def reason_of(finding: Finding) -> str:
    """Why, with the count, and what would help."""
    return _text(finding.detector, finding.level, finding.tool, finding.paired_tool, finding.count)


def text_of(said: Said) -> str:
    """The reason of a run's newest verdict, made anew: rows carry operators' words alone."""
    if said.order is not None:
        return said.order
    if (said.detector, said.level) not in _TEXTS:
        return _extended(said) or f"{said.action} by {said.detector}"
    return _text(said.detector, said.level, said.tool or "", said.paired_tool, said.times)


def _extended(said: Said) -> str | None:
    """The text of a detector of profile ``extended``, ours or an outside one."""
    for detector in detectors():
        if detector.name == said.detector:
            paired = f", {said.paired_tool}" if said.paired_tool else ""
            return detector.text.format(
                tool=shown(said.tool or ""), paired=paired[:_PAIRED], count=said.times
            )
    return None


def _text(detector: str, level: str, tool: str, paired: str | None, count: int) -> str:
    template = _TEXTS[detector, level]
    pair = f"Two different calls of {shown(tool)}"
    if paired is not None and paired != tool:
        pair = f"{shown(tool)} and {shown(paired)}"
    return template.format(tool=shown(tool), pair=pair, count=count)


def shown(tool: str) -> str:
    """A tool's name as texts have it: cut where it is long."""
    return tool if len(tool) <= _SHOWN else tool[:_SHOWN] + "..."
