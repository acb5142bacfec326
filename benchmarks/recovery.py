"""(e) Records/s and time to ready for 100,000 and 1,000,000 rows, compacted and not, and standbys.

    python -m benchmarks.recovery [--rows N ...] [--laps N] [--rounds N] [--json FILE]

A worker writes the rows (each ``--laps`` times), and leaves. Then workers start on the changelog
and are stopped again, round by round; then the changelog is compacted, and they start on that. At
last one of two workers leaves, without and with standbys, and the other takes its partitions over.
"""

from __future__ import annotations

import argparse
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.kit import kafka
from benchmarks.kit.process import Worker
from benchmarks.kit.results import Result, interleaved
from benchmarks.kit.waiting import wait_for
from benchmarks.recovering import state
from benchmarks.reporting.tables import finish
from loopstream.runtime.topics import Topics

ROWS: Final = (100_000, 1_000_000)
READY_S: Final = 600.0
HELD: Final = "loopstream_partitions_assigned"
TOOK: Final = "loopstream_recovery_seconds_sum"


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

    def take_over(self, rounds: int) -> None:
        """One of two workers leaves; how long until the other has the partitions of both open."""
        without, with_one = partial(self._take_over, 0), partial(self._take_over, 1)
        interleaved(rounds, {"without standbys": without, "with standbys": with_one})

    def start_empty(self) -> None:
        """How long the start takes when there is nothing to recover: pins are there already."""
        took = []
        for _ in range(3):
            with Worker(self.bootstrap, self.topics.prefix) as worker:
                worker.wait_ready(READY_S)
                took.append(worker.metrics()[TOOK])
        self._empty_s = min(took)

    def _start(self, log: str, records: int, mib: float, _turn: int) -> None:
        with Worker(self.bootstrap, self.topics.prefix) as worker:
            ready = worker.wait_ready(READY_S)
            told = worker.metrics()
            peak = worker.peak
        recovery = told[TOOK]
        reading = recovery - self._empty_s
        sample = {
            "ready_s": ready,
            "recovery_s": recovery,
            "records": float(records),
            "empty_s": self._empty_s,
            "mib": mib,
            "rows_found": told["loopstream_runs_active"],
            "rss_mib": peak,
        }
        if reading > self._empty_s:  # else it is lost in the time to join the group
            sample["records_per_s"] = records / reading
        self.result.add(sample, rows=f"{self.rows:,}", changelog=log)

    def _take_over(self, standbys: int, _turn: int) -> None:
        with ExitStack() as stack:
            leaver, heir = (
                stack.enter_context(
                    Worker(self.bootstrap, self.topics.prefix, worker__standby_replicas=standbys)
                )
                for _ in range(2)
            )
            half = kafka.PARTITIONS // 2
            wait_for("both hold half", lambda: _hold(half, leaver, heir), READY_S)
            # Standbys read on beside open partitions; twice the time of the start is enough.
            time.sleep(2 * (time.monotonic() - heir.began))
            before = heir.metrics()[TOOK]
            leaver.stop()
            wait_for("the heir holds all", lambda: _hold(kafka.PARTITIONS, heir), READY_S)
            told = heir.metrics()
            sample = {
                "recovery_s": told[TOOK] - before,
                "rows_found": told["loopstream_runs_active"],
                "rss_mib": heir.peak,
            }
        self.result.add(sample, rows=f"{self.rows:,}", changelog=f"taken over, {standbys} standbys")


def _hold(partitions: int, *workers: Worker) -> bool:
    return all(each.ready() and each.metrics().get(HELD) == partitions for each in workers)


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
            recoveries.take_over(given.rounds)
            kafka.delete_all(bootstrap, recoveries.topics.prefix)
    finish(result, given.json)


if __name__ == "__main__":
    main()
