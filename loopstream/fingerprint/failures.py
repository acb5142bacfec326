"""Typed failures of ``exec`` (reference profile): one cause under ever new commands.

A command that ran to its end with a non-zero exit code and said something has a failure identity:
its outcome with the bits masked that differ each time (times, attempts, durations, process ids).
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

from loopstream.fingerprint.numeral import is_number, nearest_double, number_text
from loopstream.fingerprint.text import ASCII_NO_CASE

_MASK: Final = "#"
# Applied in this order. The hints spare most outputs the searches without regard to case: a pattern
# is tried only if the lower-cased output holds one of its hints.
_VOLATILE: Final = tuple(
    (hints, re.compile(pattern, ASCII_NO_CASE))
    for hints, pattern in (
        ((":",), r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:?\d\d)?"),
        ((":",), r"\d{1,2}:\d\d:\d\d(?:\.\d+)?"),
        (("attempt", "retry"), r"\b(?:attempt|retry)\b[ #:=]*\d+"),
        (("s", "m", "h"), r"\b\d+(?:\.\d+)? ?(?:ns|us|ms|s|seconds?|minutes?|hours?)\b"),
        (("pid",), r"\bp?pid\b[ #:=]*\d+"),
    )
)


def failure_identity(outcome: dict[str, Any]) -> dict[str, Any] | None:
    """The failure that a finished ``exec`` outcome shows, masked; None if it shows none.

    Args:
        outcome: what `exec_tool.exec_outcome` gives.
    """
    exit_code = outcome.get("exitCode")
    if not is_number(exit_code) or not _is_failing(exit_code):
        return None
    if outcome["timedOut"] or outcome["output"] in ("", stand_in_note(exit_code)):
        return None
    return {**outcome, "output": mask(outcome["output"])}


def _is_failing(exit_code: float) -> bool:
    return exit_code != 0 and math.isfinite(nearest_double(exit_code))


def stand_in_note(exit_code: float) -> str:
    """What the reference's exec tool puts in place of the output of a command that failed silently.

    The vectors do not hold it; recorded transcripts and public issues of the reference (its number
    136645) show it appended to the output after an empty line, and alone where there was none. It
    says nothing of the cause, so different silent commands must not count as one failure.
    """
    return f"(Command exited with code {number_text(exit_code)})"


def mask(text: str) -> str:
    """Replace the volatile bits of an output by ``#``."""
    folded = text.lower()
    for hints, pattern in _VOLATILE:
        if any(hint in folded for hint in hints):
            text = pattern.sub(_MASK, text)
    return text
