"""What a worker shows of itself, second by second."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Final

from benchmarks.kit.process import Worker

EVERY_S: Final = 1.0
LAG: Final = "loopstream_lag_records"
APPLIED: Final = "loopstream_events_consumed_total"
REBALANCES: Final = "loopstream_rebalances_total"


@dataclass(slots=True)
class Seen:
    """One reading; seconds since the watch began."""

    at: float
    rss: float
    metrics: dict[str, float] = field(default_factory=dict)


class Watch:
    """Reads a worker until it is closed."""

    def __init__(self, worker: Worker) -> None:
        self.seen: list[Seen] = []
        self._worker = worker
        self._began = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(EVERY_S):
            metrics = self._worker.metrics()
            self.seen.append(Seen(time.monotonic() - self._began, self._worker.rss, metrics))

    def close(self) -> None:
        """Look no more."""
        self._stop.set()
        self._thread.join()

    def series(self, metric: str) -> list[list[float]]:
        """(seconds, value) of a metric, where it was told."""
        return [[one.at, one.metrics[metric]] for one in self.seen if metric in one.metrics]

    def rss(self) -> list[list[float]]:
        """(seconds, MiB)."""
        return [[one.at, one.rss] for one in self.seen]

    def greatest(self, metric: str) -> float:
        """The greatest value seen; 0 if none was."""
        return max((value for _, value in self.series(metric)), default=0.0)
