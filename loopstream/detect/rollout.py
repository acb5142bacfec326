"""Rollout modes: how far a detector's findings are acted on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

Mode = Literal["off", "shadow", "warn", "enforce"]
MODES: Final[tuple[Mode, ...]] = ("off", "shadow", "warn", "enforce")
"""``off``: not asked. ``shadow``: published, marked, and not acted on. ``warn``: what would be
refused or ended is warned of instead. ``enforce``: as the rules say."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """Modes by detector, where not all are enforced; made once, when settings are resolved.

    Attributes:
        modes: detectors that are not enforced, by name.
        silent: detectors that have no say in what is done.
        shadowed: those of them that are asked all the same.
        capped: detectors that warn at most.
    """

    modes: tuple[tuple[str, Mode], ...]
    silent: frozenset[str] = field(init=False, compare=False, repr=False)
    shadowed: frozenset[str] = field(init=False, compare=False, repr=False)
    capped: frozenset[str] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "silent", self._in("off", "shadow"))
        object.__setattr__(self, "shadowed", self._in("shadow"))
        object.__setattr__(self, "capped", self._in("warn"))

    @classmethod
    def of(cls, modes: Mapping[str, Mode]) -> Rollout | None:
        """Of modes by detector; None where all of them are enforced."""
        held = tuple(sorted((name, mode) for name, mode in modes.items() if mode != "enforce"))
        return cls(held) if held else None

    def mode_of(self, detector: str) -> Mode:
        """The mode of a detector."""
        return dict(self.modes).get(detector, "enforce")

    def _in(self, *wanted: Mode) -> frozenset[str]:
        return frozenset(name for name, mode in self.modes if mode in wanted)
