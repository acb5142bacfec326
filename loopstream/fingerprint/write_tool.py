"""Outcomes of ``write`` when the file already was as wanted (reference profile)."""

from __future__ import annotations

from typing import Any, Final

# The one outcome of all writes that changed nothing, whatever else the result says.
UNCHANGED: Final = {"status": "unchanged"}


def changed_nothing(tool: str, details: dict[str, Any]) -> bool:
    """True if a write says literally that it changed nothing."""
    return tool == "write" and details.get("changed") is False
