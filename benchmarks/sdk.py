"""(f) What the runner SDK costs a process: `before_call`, and events/s to a broker.

    python -m benchmarks.sdk [--rounds N] [--calls N] [--seconds S] [--json FILE]

No worker runs: nothing is to be said about any call.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from benchmarks.kit import kafka
from benchmarks.kit.results import Result, interleaved
from benchmarks.kit.stats import quantile
from benchmarks.reporting.tables import finish
from loopstream.sdk import Run, Runner

RUNS: Final = 50
# Arguments of 1 kB, as an editing tool has them.
ARGS: Final = {
    "path": "src/app/main.py",
    "old": "x = 1\n" * 75,
    "new": "x = 2\n" * 75,
    "all": False,
}
RESULT: Final = {
    "content": [{"type": "text", "text": "done\n" * 40}],
    "details": {"status": "completed"},
}


class Costs:
    """One runner, one result."""

    def __init__(self, runner: Runner, result: Result, calls: int, seconds: float) -> None:
        self.runner = runner
        self.result = result
        self.calls = calls
        self.seconds = seconds

    def before(self, _turn: int) -> None:
        """The same 1 kB of arguments each time."""
        with self.runner.run() as run:
            self._time("before_call, 1 kB of arguments", lambda _: run.before_call("edit", ARGS))

    def before_new(self, turn: int) -> None:
        """Other arguments of 1 kB each time: no digest is known."""
        with self.runner.run() as run:
            self._time(
                "before_call, another 1 kB each time",
                lambda n: run.before_call("edit", {**ARGS, "at": f"{turn}/{n}"}),
            )

    def after(self, _turn: int) -> None:
        """An outcome with its result."""
        with self.runner.run() as run:
            decision = run.before_call("edit", ARGS)
            self._time(
                "after_call, 1 kB and a result",
                lambda _: run.after_call(decision, result=RESULT),
            )

    def _time(self, what: str, call: Callable[[int], object]) -> None:
        """Time a call many times, at a pace that leaves the sender its share."""
        times = []
        gc.collect()
        for n in range(self.calls):
            began = time.perf_counter_ns()
            call(n)
            times.append((time.perf_counter_ns() - began) / 1000)
            if n % 100 == 0:
                time.sleep(0.005)
        sample = {"p50_us": quantile(times, 0.5), "p99_us": quantile(times, 0.99)}
        self._drain()
        self.result.add(sample, what=what)

    def throughput(self, _turn: int) -> None:
        """As many calls and outcomes as one thread makes, until all are confirmed."""
        runs: list[Run] = [self.runner.run() for _ in range(RUNS)]
        before = self.runner.counters["events_sent"]
        cpu, began, n = time.process_time(), time.perf_counter(), 0
        while time.perf_counter() - began < self.seconds:
            run = runs[n % RUNS]
            decision = run.before_call("exec", {"command": f"make step-{n % 7}"})
            run.after_call(decision, result=RESULT)
            n += 1
        self._drain()
        took = time.perf_counter() - began
        sent = self.runner.counters["events_sent"] - before
        sample = {
            "rate": sent / took,
            "cpu_us": (time.process_time() - cpu) / sent * 1e6,
            "dropped": float(self.runner.counters["events_dropped"]),
        }
        self.result.add(sample, what=f"{RUNS} runs, one thread, all confirmed")
        for run in runs:
            run.end()

    def _drain(self) -> None:
        """Wait until Kafka has confirmed everything."""
        while self.runner.counters["events_pending"]:
            time.sleep(0.001)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    result = Result("sdk", {"calls": given.calls, "rounds": given.rounds})
    with kafka.broker() as bootstrap:
        kafka.prepare(bootstrap, "sdk")
        with Runner(bootstrap, prefix="sdk", agent="bench", key=b"0123456789abcdef") as runner:
            runner.wait_ready(60)
            costs = Costs(runner, result, given.calls, given.seconds)
            measures: dict[str, Any] = {
                "before_call": costs.before,
                "before_call, new": costs.before_new,
                "after_call": costs.after,
                "throughput": costs.throughput,
            }
            interleaved(given.rounds, measures)
    finish(result, given.json)


if __name__ == "__main__":
    main()
