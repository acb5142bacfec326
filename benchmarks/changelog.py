"""(b) Changelog bytes per event under paced load, by how hot runs are and how long a row may wait.

    python -m benchmarks.changelog [--longest S ...] [--rate N] [--rounds N] [--json FILE]

The target is one event per run per second; hotter runs should cost less. ``longest`` is
``worker.checkpoint_max_interval_s``; a crash costs the events since the last checkpoint to replay.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.kit import kafka
from benchmarks.kit.process import Child, Worker
from benchmarks.kit.results import Result, interleaved
from benchmarks.reporting.tables import finish

LONGEST_S: Final = (0.5, 10.0)
PER_RUN: Final = (1, 10, 100)
ROWS: Final = "loopstream_rows_written_total"
CHECKPOINTS: Final = "loopstream_checkpoints_total"


def measure(
    bootstrap: str,
    result: Result,
    given: argparse.Namespace,
    per_run: int,
    longest: float,
    turn: int,
) -> None:
    """One worker under load; bytes and rows of the time after the warm-up."""
    prefix = f"changelog-{per_run}-{longest:g}-{turn}"
    topics = kafka.prepare(bootstrap, prefix)
    rate, seconds, warm_up = given.rate, given.seconds, given.warm_up
    runs = max(10, rate // per_run)
    words = ["--bootstrap", bootstrap, "--events", topics.events, "--verdicts", topics.verdicts]
    words += ["--work", "engine", "--rate", str(rate), "--runs", str(runs)]
    words += ["--warm-up", str(warm_up), "--seconds", str(seconds)]
    settings = {"worker__checkpoint_max_interval_s": longest}
    client = [sys.executable, "-m", "benchmarks.delaying.client", *words]
    with Worker(bootstrap, prefix, **settings) as worker:
        worker.wait_ready()
        with Child(client):
            time.sleep(warm_up)
            began = (kafka.log_bytes(bootstrap, topics.changelog), worker.metrics())
            sent = kafka.log_bytes(bootstrap, topics.events)
            time.sleep(seconds - 1)
            ended = (kafka.log_bytes(bootstrap, topics.changelog), worker.metrics())
            sent = kafka.log_bytes(bootstrap, topics.events) - sent
    events = rate * (seconds - 1)
    written = (ended[0] - began[0]) / events
    checkpoints = ended[1][CHECKPOINTS] - began[1][CHECKPOINTS]
    sample = {
        "changelog_per_event": written,
        "input_per_event": sent / events,
        "x_input": written * events / sent,
        "rows_per_event": (ended[1][ROWS] - began[1][ROWS]) / events,
        "replay_events": events / max(checkpoints, 1),
    }
    each = f"{rate / runs:g}"
    result.add(sample, events_per_run_s=each, longest_s=f"{longest:g}")


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--longest", type=float, nargs="*", default=list(LONGEST_S))
    parser.add_argument("--per-run", type=int, nargs="*", default=list(PER_RUN))
    parser.add_argument("--rate", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--warm-up", type=float, default=60.0, help="histories fill meanwhile")
    parser.add_argument("--seconds", type=float, default=41.0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    settings = {"events/s": given.rate, "seconds": given.seconds, "rounds": given.rounds}
    result = Result("changelog", settings)
    with kafka.broker() as bootstrap:
        interleaved(
            given.rounds,
            {
                f"{per_run} events per run and second, rows wait {longest:g} s": partial(
                    measure, bootstrap, result, given, per_run, longest
                )
                for per_run in given.per_run
                for longest in given.longest
            },
        )
    finish(result, given.json)


if __name__ == "__main__":
    main()
