"""(e) Records/s and time to ready for 100,000 and 1,000,000 rows, compacted and not.

    python -m benchmarks.recovery [--rows N ...] [--laps N] [--rounds N] [--json FILE]

A worker writes the rows (each ``--laps`` times), and leaves. Then workers start on the changelog
and are stopped again, round by round; at last the changelog is compacted, and they start on that.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.kit import kafka
from benchmarks.kit.process import Worker
from benchmarks.kit.results import Result, interleaved
from benchmarks.recovering import state
from benchmarks.reporting.tables import finish
from loopstream.runtime.topics import Topics

ROWS: Final = (100_000, 1_000_000)
READY_S: Final = 600.0


class Recoveries:
    """One deployment whose worker comes and goes."""

    def __init__(self, bootstrap: str, result: Result, rows: int) -> None:
        self.bootstrap = bootstrap
        self.result = result
        self.rows = rows
        self.topics: Topics = kafka.prepare(bootstrap, f"recovery-{rows}")
        self._empty_s = 0.0

    def measure(self, rounds: int, log: str) -> None:
        """Starts on the changelog as it is now."""
        records = state.changelog(self.bootstrap, self.topics)
        mib = kafka.log_bytes(self.bootstrap, self.topics.changelog) / 2**20
        start = partial(self._start, log, records, mib)
        interleaved(rounds, {f"{self.rows:,} rows, {log}": start})

    def start_empty(self) -> None:
        """How long the start takes when there is nothing to recover: pins are there already."""
        for _ in range(2):
            with Worker(self.bootstrap, self.topics.prefix) as worker:
                worker.wait_ready(READY_S)
                self._empty_s = worker.metrics()["loopstream_recovery_seconds_sum"]

    def _start(self, log: str, records: int, mib: float, _turn: int) -> None:
        with Worker(self.bootstrap, self.topics.prefix) as worker:
            ready = worker.wait_ready(READY_S)
            told = worker.metrics()
            peak = worker.peak
        recovery = told["loopstream_recovery_seconds_sum"]
        reading = max(recovery - self._empty_s, 0.01)
        sample = {
            "ready_s": ready,
            "recovery_s": recovery,
            "records": float(records),
            "empty_s": self._empty_s,
            "records_per_s": records / reading,
            "mib": mib,
            "rows_found": told["loopstream_runs_active"],
            "rss_mib": peak,
        }
        self.result.add(sample, rows=f"{self.rows:,}", changelog=log)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=list(ROWS))
    parser.add_argument("--laps", type=int, default=4, help="times that each row is written")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    result = Result("recovery", {"laps": given.laps, "rounds": given.rounds})
    with kafka.broker() as bootstrap:
        for rows in given.rows:
            recoveries = Recoveries(bootstrap, result, rows)
            recoveries.start_empty()
            state.fill(bootstrap, recoveries.topics, rows, given.laps)
            recoveries.measure(given.rounds, "as written")
            state.compact(bootstrap, recoveries.topics, rows)
            recoveries.measure(given.rounds, "compacted")
            kafka.delete_all(bootstrap, recoveries.topics.prefix)
    finish(result, given.json)


if __name__ == "__main__":
    main()
