"""Reading a tool's result: the two parts of it that count."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from loopstream.events.text import trim

# The result that a runner gives in place of a call which it refused as part of a loop.
_VETO_STATUS: Final = "blocked"
_VETO_REASON: Final = "tool-loop"


class Reading(NamedTuple):
    """A result object, read.

    Attributes:
        details: its ``details`` if they are an object, else empty.
        text: the text of its ``content`` entries, one a line, trimmed.
    """

    details: dict[str, Any]
    text: str


def read_result(result: dict[str, Any]) -> Reading:
    """Read a result object; nothing but details and text counts."""
    details = result.get("details")
    content = result.get("content")
    lines = _texts(content) if isinstance(content, list) else ()
    return Reading(details if isinstance(details, dict) else {}, trim("\n".join(lines)))


def is_loop_veto(details: dict[str, Any]) -> bool:
    """True if the call was refused as part of a loop; any other refusal is an ordinary outcome."""
    return details.get("status") == _VETO_STATUS and details.get("deniedReason") == _VETO_REASON


def _texts(content: Iterable[object]) -> Iterable[str]:
    """The text of each entry that is an object with a type, whatever type that is."""
    for entry in content:
        if isinstance(entry, dict) and isinstance(entry.get("type"), str):
            text = entry.get("text")
            if isinstance(text, str):
                yield text
