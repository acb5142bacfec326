"""The settings in force for a run, resolved: what the detectors compare with."""

from __future__ import annotations

from dataclasses import dataclass, field

from loopstream.detect.extended.limits import ExtendedLimits
from loopstream.detect.rollout import Mode, Rollout


@dataclass(frozen=True, slots=True)
class Limits:
    """Resolved detector settings (SEMANTICS section 7): defaults filled in, thresholds clamped.

    ``policy.settings`` makes them from the documented JSON blocks. Counts are records of one
    run's history.
    """

    enabled: bool = False
    """Judge calls at all."""
    entered: bool = True
    """Enter calls into the history; false only where ``enabled`` is literally false."""
    history_size: int = 30
    warning: int = 10
    critical: int = 20
    unknown_tool: int = 10
    breaker: int = 30
    generic_repeat: bool = True
    known_poll: bool = True
    ping_pong: bool = True
    guard: bool = True
    guard_window: int = 3
    guard_mode: Mode = "enforce"
    rollout: Rollout | None = None
    """Modes of detectors; None where all are enforced."""
    extended: ExtendedLimits | None = None
    """Profile ``extended`` only."""
    digest: str = field(default="", compare=False)
    """Names these settings in verdicts."""
    floor: int = field(init=False, compare=False)
    """The smallest threshold: with no count at or above it no rule can speak."""

    def __post_init__(self) -> None:
        floor = min(self.warning, self.critical, self.unknown_tool, self.breaker)
        object.__setattr__(self, "floor", floor)
