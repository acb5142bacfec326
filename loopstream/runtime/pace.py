"""When a checkpoint is worth its rows.

A checkpoint writes each changed run's whole row, so its cost per event falls with the events that
a row has taken since the last one. Hot runs are written often, others are given time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

EVENTS_PER_ROW: Final = 64
"""Events per changed row that make the cost of writing it small beside theirs."""
FEW_ROWS: Final = 64
"""Changed rows so few that writing them at each look costs nothing worth saving."""


class Pace:
    """Decides when the next checkpoint is due.

    Args:
        shortest_s: time between two looks.
        longest_s: time after which changed rows are written whatever they cost.
        max_dirty_rows: changed rows at which memory decides.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        shortest_s: float,
        longest_s: float,
        max_dirty_rows: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._shortest_s = shortest_s
        self._longest_s = longest_s
        self._max_dirty_rows = max_dirty_rows
        self._clock = clock
        self._looked = self._taken = clock()
        self._applied = 0

    def wait_s(self) -> float:
        """Seconds until the next look."""
        return max(self._looked + self._shortest_s - self._clock(), 0.01)

    def due(self, dirty: int, applied: int) -> bool:
        """Look: whether to take a checkpoint of ``dirty`` rows, at ``applied`` events in all."""
        self._looked = self._clock()
        return (
            dirty <= FEW_ROWS
            or dirty >= self._max_dirty_rows
            or applied - self._applied >= dirty * EVENTS_PER_ROW
            or self._looked - self._taken >= self._longest_s
        )

    def took(self, applied: int) -> None:
        """A checkpoint was taken (or there was nothing to take) at ``applied`` events in all."""
        self._looked = self._taken = self._clock()
        self._applied = applied
