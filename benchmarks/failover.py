"""(e) kill -9 of a worker until the next verdict of its runs.

    python -m benchmarks.failover [--rows N] [--rounds N] [--session S] [--json FILE]

Three ways: another worker takes over, without and with a standby; the same static member comes
back at once. Gated calls in every partition, 20 a second, show the gap from outside.
"""

from __future__ import annotations

import argparse
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.kit import kafka
from benchmarks.kit.process import Worker
from benchmarks.kit.results import Result, interleaved
from benchmarks.kit.waiting import wait_for
from benchmarks.recovering import state
from benchmarks.recovering.probe import Probe
from benchmarks.reporting.tables import finish
from loopstream.runtime.topics import Topics

HELD = "loopstream_partitions_assigned"


class Failovers:
    """One deployment with rows to recover."""

    def __init__(self, bootstrap: str, result: Result, rows: int, session_s: float) -> None:
        self.bootstrap = bootstrap
        self.result = result
        self.rows = rows
        self.settings: dict[str, Any] = {"worker__session_timeout_s": session_s}
        self.topics: Topics = kafka.prepare(bootstrap, "failover")

    def takes_over(self, standbys: int, _turn: int) -> None:
        """The other of two workers takes over."""
        given = {**self.settings, "worker__standby_replicas": standbys}
        with ExitStack() as stack:
            workers = [self._worker(stack, **given) for _ in range(2)]
            wait_for("both hold partitions", lambda: all(map(_holds, workers)), 180)
            probe = self._probe(stack)
            workers[0].kill()
            self._tell(probe, time.monotonic(), f"another takes over, {standbys} standbys")

    def comes_back(self, _turn: int) -> None:
        """The only worker is started again under its id."""
        given = {**self.settings, "worker__instance_id": "w1"}
        with ExitStack() as stack:
            worker = self._worker(stack, **given)
            probe = self._probe(stack)
            worker.kill()
            killed = time.monotonic()
            self._worker(stack, wait=False, **given)
            self._tell(probe, killed, "the static member comes back")

    def _worker(self, stack: ExitStack, *, wait: bool = True, **settings: Any) -> Worker:
        worker = stack.enter_context(Worker(self.bootstrap, self.topics.prefix, **settings))
        if wait:
            worker.wait_ready()
        return worker

    def _probe(self, stack: ExitStack) -> Probe:
        probe = Probe(self.bootstrap, self.topics)
        stack.callback(probe.close)
        probe.wait_answers(time.monotonic())
        return probe

    def _tell(self, probe: Probe, killed: float, way: str) -> None:
        probe.wait_answers(killed)
        gaps = [(probe.first(n, killed) or killed) - killed for n in range(kafka.PARTITIONS)]
        self.result.add({"gap_s": max(gaps), "rows": float(self.rows)}, way=way)


def _holds(worker: Worker) -> bool:
    return worker.ready() and worker.metrics().get(HELD, 0) == kafka.PARTITIONS / 2


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--session", type=float, default=12.0, help="session time-out, s")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    settings = {"rows": given.rows, "session timeout s": given.session, "rounds": given.rounds}
    result = Result("failover", settings)
    with kafka.broker() as bootstrap:
        failovers = Failovers(bootstrap, result, given.rows, given.session)
        state.fill(bootstrap, failovers.topics, given.rows, 1)
        interleaved(
            given.rounds,
            {
                "takes over": partial(failovers.takes_over, 0),
                "takes over from a standby": partial(failovers.takes_over, 1),
                "comes back": failovers.comes_back,
            },
        )
    finish(result, given.json)


if __name__ == "__main__":
    main()
