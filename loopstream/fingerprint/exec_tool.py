"""Outcomes of ``exec``: by the command's status, without what changes from run to run."""

from __future__ import annotations

from typing import Any, Final

from loopstream.events.text import trim
from loopstream.fingerprint.numeral import is_number
from loopstream.fingerprint.results import Reading

_FINISHED: Final = ("completed", "failed")
_APPROVAL: Final = ("approval-pending", "approval-unavailable")


def exec_outcome(reading: Reading) -> dict[str, Any] | None:
    """The part of an ``exec`` result that counts; None if its status is none of the known.

    Process id, duration, working directory and the like are left out of the known ones only.
    """
    details = reading.details
    status = details.get("status")
    if status == "running":
        return {"status": status, "tail": _string_or(details.get("tail"), "")}
    if status in _FINISHED:
        return _finished(reading)
    if status in _APPROVAL:
        return _approval(details)
    return None


def _finished(reading: Reading) -> dict[str, Any]:
    details = reading.details
    exit_code = details.get("exitCode")
    return {
        "status": details["status"],
        "exitCode": exit_code if is_number(exit_code) else None,
        "timedOut": details.get("timedOut") is True,
        "output": _output(reading),
    }


def _output(reading: Reading) -> str:
    aggregated = reading.details.get("aggregated")
    trimmed = trim(aggregated) if isinstance(aggregated, str) else ""
    return trimmed or reading.text


def _approval(details: dict[str, Any]) -> dict[str, Any]:
    return {
        "status": details["status"],
        "reason": _string_or(details.get("reason"), None),
        "host": _string_or(details.get("host"), None),
        "command": _string_or(details.get("command"), ""),
        "warningText": _string_or(details.get("warningText"), ""),
    }


def _string_or(value: object, default: str | None) -> str | None:
    return value if isinstance(value, str) else default
