"""The post-compaction guard of one run: does it fall back into the same loop?

Source: SEMANTICS section 9.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Observation:
    """What the guard says after one outcome."""

    abort: bool
    armed: bool
    remaining: int
    count: int = 0


IDLE: Final = Observation(abort=False, armed=False, remaining=0)


class Guard:
    """Counts the outcomes after a compaction; all ``window`` of them equal means abort.

    As no more than ``window`` outcomes are ever looked at, it is enough to remember the first
    one and whether all that followed were equal to it.
    """

    __slots__ = ("alike", "first", "remaining", "window")

    def __init__(self) -> None:
        self.window = 0
        self.remaining = 0
        self.first: tuple[str, str] | None = None
        self.alike = True

    def arm(self, window: int) -> None:
        """A compaction succeeded and is retried; in mid-window it starts over."""
        self.window = self.remaining = window
        self.first = None
        self.alike = True

    def observe(self, signature: str, result: str) -> Observation:
        """Feed one recorded outcome of the run."""
        if self.remaining == 0:
            return IDLE
        self.remaining -= 1
        outcome = (signature, result)
        if self.first is None:
            self.first = outcome
        elif self.first != outcome:
            self.alike = False
        abort = self.remaining == 0 and self.alike
        if self.remaining == 0:
            self.first = None
        return Observation(
            abort, self.remaining > 0, self.remaining, count=self.window if abort else 0
        )
