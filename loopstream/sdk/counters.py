"""What a runner counts, so that its host can watch it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

log: Final = logging.getLogger("loopstream.sdk")

NAMES: Final = (
    "events_sent",
    "events_dropped",
    "frames_sent",
    "frames_retried",
    "verdicts_received",
    "verdicts_duplicate",
    "verdicts_shadow",
    "verdicts_undecodable",
    "verdicts_unsigned",
    "verdicts_evicted",
    "warns",
    "blocks",
    "aborts",
    "gate_timeouts",
    "answers_late",
    "calls_after_end",
    "errors",
)


class Counters:
    """Counts by name, safe to add to from any thread. The names are `NAMES`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(NAMES, 0)

    def add(self, name: str, count: int = 1) -> None:
        """Count ``count`` more of ``name``."""
        with self._lock:
            self._counts[name] += count

    def view(self) -> dict[str, int]:
        """A copy of all counts."""
        with self._lock:
            return dict(self._counts)


class Complaints:
    """Log lines about trouble that may last: one a minute for each kind, the rest counted.

    Args:
        clock: monotonic seconds.
    """

    EVERY_S = 60.0

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._last: dict[str, float] = {}
        self._hushed: dict[str, int] = {}

    def say(self, kind: str, message: str, *args: object) -> None:
        """Log a warning, unless one of this kind went out within the minute."""
        now = self._clock()
        with self._lock:
            last = self._last.get(kind)
            if last is not None and now - last < self.EVERY_S:
                self._hushed[kind] = self._hushed.get(kind, 0) + 1
                return
            self._last[kind] = now
            hushed = self._hushed.pop(kind, 0)
        log.warning(message, *args)
        if hushed:
            log.warning("%d more like this in the minute before", hushed)
