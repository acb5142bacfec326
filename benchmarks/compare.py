"""(b, g) Our worker and its peers on one real broker: same input, same verdicts, interleaved.

    python -m benchmarks.compare [--quick] [--rounds N] [--events N] [--peers NAME ...]
        [--json FILE]

Each round writes every input anew, and each peer in turn finds it complete (catch-up). Peers must
agree on the number of verdicts, or there is no result. ``--quick`` (`make bench-quick`): the streak
work, the limit and Quix alone, then the verdict delay at 2,000 events/s; its last line is
``frames_x_quix=… frames_x_limit=… single_x_quix=… verdict_p99_ms=…``.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks import delay
from benchmarks.kit import feed, kafka
from benchmarks.kit.feed import Framing, Kind
from benchmarks.kit.process import Child
from benchmarks.kit.results import FOLDER, Result, Sample, interleaved
from benchmarks.peers.registry import (
    FRAMES,
    JSON,
    LIMIT,
    OURS,
    QUIX,
    SINGLE,
    Peer,
    available,
    command,
)
from benchmarks.reporting.tables import finish

TIMEOUT_S: Final = 600.0
WORKS: Final[tuple[tuple[Kind, Framing], ...]] = tuple(
    (kind, framing) for kind in ("streak", "engine") for framing in (SINGLE, FRAMES, JSON)
)
QUICK: Final[tuple[tuple[Kind, Framing], ...]] = (("streak", SINGLE), ("streak", FRAMES))
# Of the streak work's events: a step of the engine costs some five times as much.
ENGINE_SHARE: Final = 4
SLOW_SHARE: Final = 8


class Comparison:
    """One broker, one result, and the inputs of the round at hand."""

    def __init__(self, bootstrap: str, result: Result, events: int, runs: int) -> None:
        self.bootstrap = bootstrap
        self.result = result
        self.events = events
        self.runs = runs

    def round(self, kind: Kind, framing: Framing, peers: list[Peer], turn: int) -> None:
        """Every peer that does this work, once, on one input.

        Raises:
            SystemExit: a peer failed, or they don't agree on the verdicts.
        """
        events = self.events // (ENGINE_SHARE if kind == "engine" else 1)
        quick = [peer for peer in peers if not peer.slow]
        self._measure(f"{turn}", kind, framing, quick, events)
        if any(peer.slow for peer in peers):
            short = [peer for peer in peers if peer.slow or peer.name in {LIMIT, QUIX}]
            self._measure(f"{turn}s", kind, framing, short, events // SLOW_SHARE, " (short)")
        kafka.delete_all(self.bootstrap, "bench-")

    def _measure(
        self,
        tag: str,
        kind: Kind,
        framing: Framing,
        peers: list[Peer],
        events: int,
        note: str = "",
    ) -> None:
        prefix = f"bench-{kind}-{framing.replace(' ', '-')}-{tag}"
        topics = kafka.prepare(self.bootstrap, prefix)
        source = feed.records(kind, framing, events, min(self.runs, events))
        written = feed.write(self.bootstrap, topics.events, source)
        told: dict[str, float] = {}
        for peer in peers:
            sample = self._run(peer, prefix, kind, events)
            told[peer.name] = sample["verdicts"]
            sample["input_per_event"] = written / events
            labels = {"work": f"{kind}{note}", "framing": framing, "peer": peer.name}
            self.result.add(sample, **labels)
        if len(set(told.values())) != 1:
            raise SystemExit(f"the peers disagree on the verdicts: {told}")

    def _run(self, peer: Peer, prefix: str, kind: Kind, events: int) -> Sample:
        name = f"{prefix}-{peer.name}"
        out = f"{prefix}.verdicts" if peer.name == OURS else f"{name}-verdicts"
        if peer.name != OURS:
            kafka.create(self.bootstrap, out)
        with Child(command(peer, self.bootstrap, prefix, out, kind, events)) as child:
            output = child.output(TIMEOUT_S)
            sample = told(output, peer.name, child.said())
            sample["rss_mib"] = child.peak
        mark = f"{prefix}.worker" if peer.name == OURS else name
        sample["changelog_per_event"] = (
            kafka.log_bytes(self.bootstrap, mark, "changelog") / events if peer.durable else 0.0
        )
        return sample


def told(output: str, peer: str, errors: str) -> Sample:
    """The last line's JSON object: frameworks may write to stdout before it."""
    lines = [line[line.index("{") :] for line in output.splitlines() if "{" in line]
    if not lines:
        raise SystemExit(f"{peer} failed:\n{output[-2000:]}\n{errors}")
    sample: Sample = json.loads(lines[-1])
    return sample


def closing_line(worker: Result, delays: Result) -> str:
    """What `make bench-quick` ends with."""
    ours = worker.case(work="streak", framing=FRAMES, peer=OURS)
    single = worker.case(work="streak", framing=SINGLE, peer=OURS)
    quix = worker.case(work="streak", framing=SINGLE, peer=QUIX)
    limit = worker.case(work="streak", framing=FRAMES, peer=LIMIT)
    delayed = delays.case(peer=OURS)
    figures = {
        "frames_x_quix": worker.ratio("rate", ours, quix),
        "frames_x_limit": worker.ratio("rate", ours, limit),
        "single_x_quix": worker.ratio("rate", single, quix),
        "verdict_p99_ms": None if delayed is None else delayed.median("p99"),
    }
    return " ".join(
        f"{name}={'n/a' if value is None else f'{value:.2f}'}" for name, value in figures.items()
    )


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="limit and Quix alone, and the delay")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--events", type=int, default=400_000)
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--seconds", type=float, default=15.0, help="--quick: of the delay")
    parser.add_argument("--peers", nargs="*", help="default: all that can run here")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    settings = {"events": given.events, "runs": given.runs, "rounds": given.rounds}
    result = Result("worker", settings)
    peers, missing = available([LIMIT, QUIX, OURS] if given.quick else given.peers)
    for name, why in missing.items():
        result.skip(name, why)
    with kafka.broker() as bootstrap:
        comparison = Comparison(bootstrap, result, given.events, given.runs)
        interleaved(
            given.rounds,
            {
                f"{kind}, {framing}": partial(
                    comparison.round,
                    kind,
                    framing,
                    [peer for peer in peers if (kind, framing) in peer.does],
                )
                for kind, framing in (QUICK if given.quick else WORKS)
            },
        )
        delays = delay.quick(bootstrap, given.seconds) if given.quick else None
    finish(result, given.json or (FOLDER / "worker-quick.json" if given.quick else None))
    if delays is not None:
        print(closing_line(result, delays))


if __name__ == "__main__":
    main()
