"""Overload: producers faster than the worker, a hot partition, one endless run, 1,000 agents.

    python -m benchmarks.overload [--minutes M] [--quick] [--json FILE]

Nothing may grow without bound but the lag, which must show, and be worked off afterwards.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from benchmarks.kit import feed, kafka
from benchmarks.kit.process import Child, Worker
from benchmarks.kit.results import Result, Sample, say
from benchmarks.kit.stats import percentiles
from benchmarks.kit.waiting import wait_for
from benchmarks.overloading.watch import APPLIED, LAG, REBALANCES, Watch
from benchmarks.recovering.probe import Probe
from benchmarks.reporting.tables import finish

ROWS: Final = "loopstream_row_bytes_count"
CATCH_UP_S: Final = 3_600.0
# Records; what is under way while somebody keeps sending.
CAUGHT_UP: Final = 100
RUNS: Final = 2_000
HOT: Final = 0
PACE_EVENTS: Final = 100_000


class Overloads:
    """One broker, one result.

    Args:
        factor: of what the worker was seen to do, that producers send.
    """

    def __init__(
        self, bootstrap: str, result: Result, seconds: float, factor: float, events: int
    ) -> None:
        self.bootstrap = bootstrap
        self.result = result
        self.seconds = seconds
        self.factor = factor
        self.events = events
        self.capacity = 0.0

    def pace(self) -> None:
        """What a worker does when it catches up: the load is measured out by it."""
        count = min(PACE_EVENTS, self.events)
        source = feed.records("engine", "single msgpack", count, RUNS)
        sample = self._catch_up("overload-pace", source, count)
        self.capacity = sample["rate"]
        self.result.add(sample, case="catch-up, 2,000 runs, single records")

    def sustained(self) -> None:
        """All partitions get more than the worker can do."""
        with ExitStack() as stack:
            topics = kafka.prepare(self.bootstrap, "overload-all")
            worker = stack.enter_context(Worker(self.bootstrap, topics.prefix))
            worker.wait_ready()
            self._overload(worker, topics, "producers too fast", None)

    def hot(self) -> None:
        """One partition gets more than the worker can do; the others are asked for answers."""
        with ExitStack() as stack:
            topics = kafka.prepare(self.bootstrap, "overload-hot")
            worker = stack.enter_context(Worker(self.bootstrap, topics.prefix))
            worker.wait_ready()
            cold = tuple(n for n in range(kafka.PARTITIONS) if n != HOT)
            probe = Probe(self.bootstrap, topics, cold)
            stack.callback(probe.close)
            began = time.monotonic()
            probe.wait_answers(began)
            self._overload(worker, topics, "one partition too hot", HOT)
            waits = [wait for number in cold for wait in probe.waits(number, began)]
            case = "answers in its neighbours, overload and catch-up"
            self.result.add(percentiles(waits), case=case)

    def _overload(self, worker: Worker, topics: Any, case: str, partition: int | None) -> None:
        watch = Watch(worker)
        try:
            rss, joined = worker.rss, worker.metrics().get(REBALANCES, 0.0)
            began = time.monotonic()
            sent = self._produce(topics.events, partition)
            offered = time.monotonic() - began
            applied = worker.metrics().get(APPLIED, 0.0)
            began = time.monotonic()
            wait_for(
                "catch-up", lambda: worker.metrics().get(LAG, CAUGHT_UP) < CAUGHT_UP, CATCH_UP_S
            )
            caught_up = time.monotonic() - began
        finally:
            watch.close()
        self.result.series[f"{case}: lag in records"] = watch.series(LAG)
        self.result.series[f"{case}: RSS in MiB"] = watch.rss()
        sample = {
            "offered": sent / offered,
            "applied": applied / offered,
            "lag_max": watch.greatest(LAG),
            "catch_up_s": caught_up,
            "rss_begin_mib": rss,
            "rss_peak_mib": worker.peak,
            "rebalances": watch.greatest(REBALANCES) - joined,
        }
        self.result.add(sample, case=case)

    def _produce(self, topic: str, partition: int | None) -> float:
        rate = self.capacity * self.factor
        words = ["--bootstrap", self.bootstrap, "--topic", topic, "--rate", f"{rate:.0f}"]
        words += ["--seconds", str(self.seconds), "--runs", str(RUNS)]
        if partition is not None:
            words += ["--partition", str(partition)]
        told = _told("producer", words, self.seconds * 2 + 120)
        return float(told["sent"])

    def endless(self) -> None:
        """One run with a million events, beside as many events of 2,000 runs."""
        for case, runs in (("one run", 1), (f"{RUNS:,} runs", RUNS)):
            source = feed.records("engine", "frames of 50", self.events, runs)
            sample = self._catch_up(f"overload-runs-{runs}", source, self.events)
            self.result.add(sample, case=f"{self.events:,} events of {case}, frames of 50")

    def _catch_up(self, prefix: str, source: Any, events: int) -> Sample:
        topics = kafka.prepare(self.bootstrap, prefix)
        feed.write(self.bootstrap, topics.events, source)
        with Worker(self.bootstrap, prefix) as worker:
            worker.wait_ready()
            rss, began = worker.rss, time.monotonic()
            before = worker.metrics().get(APPLIED, 0)
            while (applied := worker.metrics().get(APPLIED, 0)) < events:
                time.sleep(0.05)
            seconds = time.monotonic() - began
            wait_for("a checkpoint", lambda: bool(worker.metrics().get(ROWS)), 60)
            told = worker.metrics()
            peak = worker.peak
        return {
            "rate": (applied - before) / seconds,
            "rss_begin_mib": rss,
            "rss_peak_mib": peak,
            "row_bytes": told["loopstream_row_bytes_sum"] / told[ROWS],
        }

    def agents(self, count: int, seconds: float) -> None:
        """As many agents in one process, threads or tasks."""
        for how in ("threads", "tasks"):
            prefix = f"overload-{how}"
            kafka.prepare(self.bootstrap, prefix)
            with Worker(self.bootstrap, prefix) as worker:
                worker.wait_ready()
                words = ["--bootstrap", self.bootstrap, "--prefix", prefix, "--how", how]
                words += ["--agents", str(count), "--seconds", str(seconds)]
                told = _told("agents", words, seconds * 3 + 120)
            self.result.add(told, case=f"{count:,} agents in one process, {how}: before_call")


def _told(module: str, words: list[str], timeout_s: float) -> Sample:
    with Child([sys.executable, "-m", f"benchmarks.overloading.{module}", *words]) as child:
        output = child.output(timeout_s)
        if not output:
            raise SystemExit(f"{module} failed:\n{child.said()}")
    sample: Sample = json.loads(output)
    return sample


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="of too much load, each way")
    parser.add_argument("--factor", type=float, default=1.5, help="load by the worker's capacity")
    parser.add_argument("--events", type=int, default=1_000_000, help="of the endless run")
    parser.add_argument("--agents", type=int, default=1_000)
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    seconds = 10.0 if given.quick else given.minutes * 60
    events = min(given.events, 20_000) if given.quick else given.events
    result = Result("overload", {"seconds": seconds, "factor": given.factor, "events": events})
    with kafka.broker() as bootstrap:
        overloads = Overloads(bootstrap, result, seconds, given.factor, events)
        for measure in (overloads.pace, overloads.sustained, overloads.hot, overloads.endless):
            say(f"-- {measure.__name__}")
            measure()
            kafka.delete_all(bootstrap, "overload-")
        overloads.agents(given.agents, 5.0 if given.quick else 60.0)
    finish(result, given.json)


if __name__ == "__main__":
    main()
