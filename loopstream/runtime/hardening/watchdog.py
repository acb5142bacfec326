"""The watchdog: work waits, nothing moves, so the process ends and its supervisor starts it anew.

Answers: agents stop without a word (faust-streaming#175, #523, #532, #549) and recovery hangs
(faust-streaming#74, #158, robinhood/faust#147, #218); upstream only logs it.
"""

from __future__ import annotations

from collections.abc import Hashable

from loopstream.runtime.hardening.stall import clock


class NoProgressError(Exception):
    """Nothing moved for too long although there was work."""


class Watchdog:
    """Fed with what should move; complains when it does not."""

    def __init__(self, what: str, limit_s: float) -> None:
        self._what = what
        self._limit_s = limit_s
        self._seen: Hashable = None
        self._since: float | None = None

    def observe(self, progress: Hashable, *, waiting: bool, now: float | None = None) -> None:
        """Look once.

        Args:
            progress: any value that changes when work gets done.
            waiting: whether there is work at all.
            now: seconds; None: now.

        Raises:
            NoProgressError: work has been waiting for longer than the limit without progress.
        """
        now = clock() if now is None else now
        if not waiting or progress != self._seen or self._since is None:
            self._seen, self._since = progress, now
        elif now - self._since > self._limit_s:
            raise NoProgressError(f"{self._what} without progress for {self._limit_s:g} s")
