"""What a worker measures beside plain counts: distributions, and verdicts by kind.

Nothing here is touched once per event: a slice of events, a row, a verdict or a checkpoint is the
smallest thing that is observed.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

STEP_BOUNDS: Final = (2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 1e-2, 0.1)
DELAY_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 600.0)
CHECKPOINT_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
RECOVERY_BOUNDS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
ROW_BOUNDS: Final = (128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 65_536, 262_144, 1_048_576)


class Histogram:
    """Counts of values at or below each bound, and their sum."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """Count a value, ``times`` times."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.sum += value * times

    @property
    def count(self) -> int:
        """Number of values."""
        return sum(self.counts)

    def buckets(self) -> Iterator[tuple[str, int]]:
        """Upper bound as Prometheus writes it, and how many values are at or below it."""
        total = 0
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            total += count
            yield "+Inf" if bound == float("inf") else str(bound), total


@dataclass(slots=True)
class Measures:
    """Distributions of one worker process, and what its verdicts were."""

    verdicts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """By detector, action and mode."""
    step_seconds: Histogram = field(default_factory=lambda: Histogram(STEP_BOUNDS))
    """Mean time of a record in its slice, once per record."""
    verdict_delay_seconds: Histogram = field(default_factory=lambda: Histogram(DELAY_BOUNDS))
    """From an event's append time to the broker's word that its verdict is durable."""
    checkpoint_seconds: Histogram = field(default_factory=lambda: Histogram(CHECKPOINT_BOUNDS))
    recovery_seconds: Histogram = field(default_factory=lambda: Histogram(RECOVERY_BOUNDS))
    """From the loss of the old assignment until the new one's partitions were open."""
    row_bytes: Histogram = field(default_factory=lambda: Histogram(ROW_BOUNDS))
    unassigned_since: float | None = field(default_factory=time.monotonic)
    """When partitions were taken away or the process started; None: they are open."""

    def partitions_lost(self) -> None:
        """The assignment is gone; the clock of recovery runs."""
        if self.unassigned_since is None:
            self.unassigned_since = time.monotonic()

    def partitions_open(self) -> None:
        """The new assignment's partitions are open."""
        if self.unassigned_since is not None:
            self.recovery_seconds.observe(time.monotonic() - self.unassigned_since)
            self.unassigned_since = None

    def verdict_durable(self, append_time_ms: int) -> None:
        """A verdict on an event of this append time was confirmed."""
        self.verdict_delay_seconds.observe(max(0.0, time.time() - append_time_ms / 1000))
