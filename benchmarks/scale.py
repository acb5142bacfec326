"""(d) From 1,000 to 1,000,000 live runs: rate, and bytes per run in row and in memory.

    python -m benchmarks.scale [--runs N ...] [--rounds N] [--seconds N] [--json FILE]

The fold of one partition, without Kafka: frames of 50 are decoded, applied and checkpointed into
rows in memory, as a worker does with one partition. Each case runs in a process of its own, so
that memory is its own.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from array import array
from functools import partial
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import psutil

from benchmarks.kit.process import Child
from benchmarks.kit.results import Result, Sample, interleaved
from benchmarks.reporting.tables import finish
from benchmarks.stepping.mixes import MIXES
from benchmarks.stepping.population import in_bursts, in_turn, row_of, stored, templates
from loopstream.config.tree import WorkerSettings
from loopstream.partition import Partition
from loopstream.partition.marker import Marker
from loopstream.partition.sources import NoSources
from loopstream.policy.deployment import Deployment
from loopstream.runtime.loop import collect_rarely
from loopstream.runtime.pace import Pace
from loopstream.runtime.rows import MemoryRows
from loopstream.wire.codec import pack_frame

RUNS: Final = (1_000, 10_000, 100_000, 1_000_000)
ORDERS: Final = {"in turn": in_turn, "bursts": in_bursts}
FRAME: Final = 50
DEFAULTS: Final = WorkerSettings()
# What `Pace.wait_s` says at least.
_SHORTEST_WAIT_S: Final = 0.01


class Lane:
    """A partition with its rows, and the worker's part of the checkpoint."""

    def __init__(self, rows: MemoryRows) -> None:
        self.rows = rows
        marker = Marker(0, settings={"*": json.dumps({"enabled": True})}, pinned=True).pack()
        self.fold = Partition(Deployment("bench"), 0, 1, rows, NoSources(), state=marker)
        self.written = 0
        self._applied = 0
        self._pace = Pace(
            DEFAULTS.checkpoint_interval_s,
            DEFAULTS.checkpoint_max_interval_s,
            DEFAULTS.max_dirty_rows,
        )

    def take(self, value: bytes, offset: int) -> None:
        """Apply a record; checkpoint when it is time."""
        self.fold.apply(
            SimpleNamespace(offset=offset, timestamp=1_790_000_000_000, value=value, headers=())
        )
        self._applied += FRAME
        if self.fold.dirty >= DEFAULTS.max_dirty_rows or self._is_due():
            self.checkpoint()

    def _is_due(self) -> bool:
        looks = self._pace.wait_s() <= _SHORTEST_WAIT_S
        return looks and self._pace.due(self.fold.dirty, self._applied)

    def checkpoint(self) -> None:
        """Rows into the store, live states within bounds."""
        for key, row in self.fold.take_rows():
            self.rows.put(key, row)
            self.written += 1
        self.fold.summaries()
        self.fold.verdicts.clear()
        self.fold.shrink(DEFAULTS.max_live_runs)
        self._pace.took(self._applied)


def one(runs: int, order: str, seconds: float) -> Sample:
    """One case, in this process."""
    process = psutil.Process()
    collect_rarely()  # as a worker does
    empty = process.memory_info().rss
    lane = Lane(stored(runs))
    gc.collect()
    filled = process.memory_info().rss
    sources = ORDERS[order](runs)
    fields, events = templates(2_000), 0
    told = array("L", bytes(array("L").itemsize * runs))  # events of each run: its place in them
    spent, written = 0.0, 0
    # A lap over the runs that fit comes first: states are live, memory has its final size.
    warm = min(runs, DEFAULTS.max_live_runs) // FRAME
    offset = 100
    while spent < seconds:
        frame = []
        for run in islice(sources, FRAME):
            each = fields[(told[run] + 2 * run) % len(fields)]
            frame.append({**each, "run": f"run-{run:07}", "id": f"{events:x}"})
            told[run] += 1
            events += 1
        value = pack_frame(frame)
        began = time.process_time()
        lane.take(value, offset)
        offset += 1
        if warm:
            warm -= 1
            written = lane.written
            counted = events
        else:
            spent += time.process_time() - began
    live = len(lane.fold.live)
    gc.collect()
    grown = process.memory_info().rss - filled
    row = lane.rows.get(b"run-%07d" % 0) or b""
    measured = events - counted
    return {
        "rate": measured / spent,
        "rows_per_event": (lane.written - written) / measured,
        "row_bytes": float(len(row)),
        "stored_bytes": (filled - empty) / runs,
        "live_bytes": grown / max(live, 1),
        "live": float(live),
        "rss_mib": process.memory_info().rss / 2**20,
    }


def measure(result: Result, runs: int, order: str, seconds: float, _turn: int) -> None:
    """One case, in a process of its own."""
    words = ["--one", str(runs), order, "--seconds", str(seconds)]
    with Child([sys.executable, "-m", "benchmarks.scale", *words]) as child:
        output = child.output(600 + seconds * 10)
        if not output:
            raise SystemExit(child.said())
    result.add(json.loads(output), order=order, runs=f"{runs:,}")


def rows(path: Path | None) -> None:
    """What a row takes, by what its run did."""
    result = Result("rows", {"history": 30})
    for name in MIXES:
        for calls in (1, 30, 300):
            size = {"row_bytes": float(len(row_of(name, calls)))}
            result.add(size, mix=name, calls=str(calls))
    finish(result, path and path.with_name("rows.json"))


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, nargs="*", default=list(RUNS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--seconds",
        type=float,
        default=15.0,
        help="of processor time, a case; less than a checkpoint's interval leaves its cost out",
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("--one", nargs=2, metavar=("RUNS", "ORDER"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(one(int(given.one[0]), given.one[1], given.seconds)))
        return
    result = Result("scale", {"seconds": given.seconds, "rounds": given.rounds})
    interleaved(
        given.rounds,
        {
            f"{runs:,} runs, {order}": partial(measure, result, runs, order, given.seconds)
            for runs in given.runs
            for order in ORDERS
        },
    )
    finish(result, given.json)
    rows(given.json)


if __name__ == "__main__":
    main()
