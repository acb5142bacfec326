"""(c) From an event to the verdict received, at 500, 2,000 and 10,000 events/s.

    python -m benchmarks.delay [--rates N ...] [--rounds N] [--seconds N] [--json FILE]

Ours, Quix and the limit do the same work on the same load with the same client. What the limit
takes is the machine's, its broker's and the client's: nothing is much faster in the same round.
Ours is measured through the SDK too: verdicts on agents' calls, and what a gated call waits. Bytes
of the changelog are taken on the way.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.kit import kafka
from benchmarks.kit.feed import Kind
from benchmarks.kit.process import Child, Worker
from benchmarks.kit.results import Result, Sample, interleaved
from benchmarks.peers.registry import LIMIT, OURS, QUIX, Peer, available, command
from benchmarks.reporting.tables import finish

RATES: Final = (500, 2_000, 10_000)
EVENTS_PER_RUN_S: Final = 10
ENDLESS: Final = 2**40


class Delays:
    """One broker, one result."""

    def __init__(self, bootstrap: str, result: Result, warm_up: float, seconds: float) -> None:
        self.bootstrap = bootstrap
        self.result = result
        self.warm_up = warm_up
        self.seconds = seconds

    def records(self, peer: Peer, kind: Kind, rate: int, turn: int) -> None:
        """A peer under single-event records."""
        prefix = f"delay-{kind}-{rate}-{turn}-{peer.name}"
        topics = kafka.prepare(self.bootstrap, prefix)
        name = f"{prefix}-{peer.name}"
        out = topics.verdicts if peer.name == OURS else f"{name}-verdicts"
        if peer.name != OURS:
            kafka.create(self.bootstrap, out)
        with Child(command(peer, self.bootstrap, prefix, out, kind, ENDLESS)) as child:
            sample = self._told(
                "client",
                {"--events": topics.events, "--verdicts": out, "--work": kind},
                rate,
            )
            sample["rss_mib"] = child.peak
            child.kill()
        mark = f"{prefix}.worker" if peer.name == OURS else name
        changelog = kafka.log_bytes(self.bootstrap, mark, "changelog")
        sample["changelog_per_event"] = changelog / sample.pop("sent")
        labels = {"path": "records", "work": kind, "rate": f"{rate:,}", "peer": peer.name}
        self.result.add(sample, **labels)

    def agents(self, rate: int, turn: int) -> None:
        """The product through the SDK."""
        prefix = f"delay-sdk-{rate}-{turn}"
        kafka.prepare(self.bootstrap, prefix)
        with Worker(self.bootstrap, prefix) as worker:
            worker.wait_ready()
            told: Any = self._told("agents", {"--prefix": prefix}, rate)
        for path, sample in told.items():
            self.result.add(sample, path=path, work="engine", rate=f"{rate:,}", peer=OURS)

    def _told(self, module: str, options: dict[str, Any], rate: int) -> Sample:
        given = {
            "--bootstrap": self.bootstrap,
            "--rate": rate,
            "--runs": max(10, rate // EVENTS_PER_RUN_S),
            "--warm-up": self.warm_up,
            "--seconds": self.seconds,
            **options,
        }
        words = [str(word) for pair in given.items() for word in pair]
        with Child([sys.executable, "-m", f"benchmarks.delaying.{module}", *words]) as client:
            output = client.output(self.warm_up + self.seconds + 120)
            if not output:
                raise SystemExit(f"the client failed:\n{client.said()}")
        sample: Sample = json.loads(output)
        return sample


def quick(bootstrap: str, seconds: float) -> Result:
    """Ours alone at 2,000 events/s, the product's work: for `make bench-quick`."""
    result = Result("delay", {"seconds": seconds})
    (ours,), _ = available([OURS])
    Delays(bootstrap, result, 8.0, seconds).records(ours, "engine", 2_000, 0)
    return result


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rates", type=int, nargs="*", default=list(RATES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm-up", type=float, default=10.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    result = Result("delay", {"seconds": given.seconds, "rounds": given.rounds})
    peers, missing = available([LIMIT, QUIX, OURS])
    for name, why in missing.items():
        result.skip(name, why)
    with kafka.broker() as bootstrap:
        delays = Delays(bootstrap, result, given.warm_up, given.seconds)
        interleaved(given.rounds, _measures(delays, given.rates, peers))
    finish(result, given.json)


def _measures(
    delays: Delays, rates: list[int], peers: list[Peer]
) -> dict[str, Callable[[int], None]]:
    kinds: tuple[Kind, ...] = ("streak", "engine")
    measures: dict[str, Callable[[int], None]] = {}
    for rate in rates:
        for kind in kinds:
            for peer in peers:
                what = f"{peer.name}, {kind}, {rate}/s"
                measures[what] = partial(delays.records, peer, kind, rate)
        measures[f"agents, {rate}/s"] = partial(delays.agents, rate)
    return measures


if __name__ == "__main__":
    main()
