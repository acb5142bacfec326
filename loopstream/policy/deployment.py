"""What a whole deployment (one prefix) agrees on: it decides verdicts, so replay must know it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Profile = Literal["documented", "reference-2026-9", "extended"]
Announce = Literal["first", "reference"]
Mode = Literal["enforce", "shadow"]

PROFILES: Final[tuple[Profile, ...]] = ("documented", "reference-2026-9", "extended")
_HOUR: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class Deployment:
    """Facts that every worker of a prefix must share. They travel in each partition's pin.

    ``idle_ms``: a run without records for longer is forgotten. ``grace_ms``: so is one this long
    after ``run_ended``. Both are measured in append time, so replay agrees.
    """

    prefix: str
    profile: Profile = "documented"
    announce: Announce = "first"
    mode: Mode = "enforce"
    idle_ms: int = 24 * _HOUR
    grace_ms: int = _HOUR // 4
    key_id: str | None = None
    """Tenant key that the worker holds for raw events; None: raw events are hashed plainly."""
