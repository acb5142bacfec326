"""The stall guard: a worker that slept must not write.

Answers: a paused process (SIGSTOP, a suspended machine, a blocked loop) wakes up without knowing
that the group gave its partitions away, and overwrites newer rows; Kafka does not fence
at-least-once writes. The guard narrows that window; monotone recovery closes it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

SHARE_OF_SESSION: Final = 0.4


class StalledError(Exception):
    """The worker's own clock stood still for too long."""


def clock() -> float:
    """Seconds, counting the time that the machine was suspended where the system can tell."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class StallGuard:
    """Compares now with the last tick; armed by the first tick, since timers start late."""

    def __init__(self, session_timeout_s: float, now: Callable[[], float] = clock) -> None:
        self._limit = session_timeout_s * SHARE_OF_SESSION
        self._now = now
        self._last: float | None = None

    def tick(self) -> None:
        """Note a sign of life.

        Raises:
            StalledError: it comes too late.
        """
        self.check()
        self._last = self._now()

    def check(self) -> None:
        """Call before each write.

        Raises:
            StalledError: no sign of life for more than 40 % of the session time.
        """
        if self._last is None:
            return
        late = self._now() - self._last
        if late > self._limit:
            raise StalledError(f"no sign of life for {late:.1f} s, limit {self._limit:.1f} s")
