"""Whether a worker is alive and ready, as one who can't look inside has to decide it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

from loopstream.runtime.hardening.stall import clock

SILENCE_S: Final = 15.0
"""The event loop looks once a second; silence for longer than this means that it is stuck."""
SHARE_OF_LIMIT: Final = 0.75
"""Of the time after which the worker gives up by itself: seen from outside it is dead earlier."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Yes or no, and why."""

    ok: bool
    reason: str


class Health:
    """Fed once a second by the event loop; asked from another thread.

    Args:
        limit_s: time with work but no progress after which a worker counts as dead.
        ready: whether partitions were assigned and recovered.
        now: seconds; a clock that goes on while the machine sleeps.
    """

    def __init__(
        self, limit_s: float, ready: Callable[[], bool], now: Callable[[], float] = clock
    ) -> None:
        self._limit_s = limit_s
        self._ready = ready
        self._now = now
        self._looked = self._moved = now()
        self._seen: Hashable = None

    def observe(self, progress: Hashable, *, waiting: bool) -> None:
        """Look once.

        Args:
            progress: any value that changes when work gets done.
            waiting: whether there is work.
        """
        self._looked = self._now()
        if not waiting or progress != self._seen:
            self._seen, self._moved = progress, self._looked

    def live(self) -> Answer:
        """Whether it makes progress while there is lag. A recovery is progress of its own kind."""
        now = self._now()
        if now - self._looked > SILENCE_S:
            return Answer(False, f"the event loop is silent for {now - self._looked:.0f} s")
        if now - self._moved > self._limit_s:
            return Answer(False, f"work waits, nothing moved for {now - self._moved:.0f} s")
        return Answer(True, "live")

    def ready(self) -> Answer:
        """Whether it has its assignment, and every partition of it was recovered and opened."""
        if self._ready():
            return Answer(True, "ready")
        return Answer(False, "partitions are being assigned or recovered")
