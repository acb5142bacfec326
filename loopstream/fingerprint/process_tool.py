"""Outcomes of ``process`` when it polls a background command or reads its log."""

from __future__ import annotations

from typing import Any, Final

from loopstream.fingerprint.canonical import MISSING
from loopstream.fingerprint.results import Reading

_FIELDS: Final = {
    "poll": ("exitCode", "exitSignal", "aggregated"),
    "log": ("totalLines", "totalChars", "truncated", "exitCode", "exitSignal"),
}


def process_outcome(args: object, reading: Reading) -> dict[str, Any] | None:
    """The part of a poll's or log's result that counts; None for any other action.

    A missing field is as good as null, except the status, whose absence counts as such.
    """
    action = args.get("action") if isinstance(args, dict) else None
    if not isinstance(action, str) or action not in _FIELDS:
        return None
    details = reading.details
    return {
        "action": action,
        "status": details.get("status", MISSING),
        **{field: details.get(field) for field in _FIELDS[action]},
        "text": reading.text,
    }
