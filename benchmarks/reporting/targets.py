"""The targets, and what of them was measured. Ratios are within interleaved rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from benchmarks.kit.results import Result

Results = Mapping[str, Result]
Measure = Callable[[Results], float | None]

OURS: Final = {"peer": "loopstream_worker"}
QUIX: Final = {"peer": "quix"}
LIMIT: Final = {"peer": "confluent_loop"}
SINGLE: Final = {"framing": "single msgpack"}
FRAMES: Final = {"framing": "frames of 50"}
STREAK: Final = {"work": "streak"}
ENGINE: Final = {"work": "engine"}


@dataclass(frozen=True, slots=True)
class Target:
    """One figure that is asked for; ``most``: it must not be above the bound."""

    what: str
    bound: float
    measure: Measure
    most: bool = False

    def met(self, value: float) -> bool:
        """Whether a value is good enough."""
        return value <= self.bound if self.most else value >= self.bound


def _ratio(
    benchmark: str, figure: str, one: Mapping[str, str], other: Mapping[str, str]
) -> Measure:
    def measure(results: Results) -> float | None:
        result = results.get(benchmark)
        if result is None:
            return None
        return result.ratio(figure, result.case(**one), result.case(**other))

    return measure


def _median(benchmark: str, figure: str, **labels: str) -> Measure:
    def measure(results: Results) -> float | None:
        result = results.get(benchmark)
        case = None if result is None else result.case(**labels)
        return None if case is None else case.median(figure)

    return measure


def _worst_history(results: Results) -> float | None:
    """The greatest cost with history 3,000 by that with 30, of all mixes."""
    engine = results.get("engine")
    if engine is None:
        return None
    ratios = [
        engine.ratio("us", case, engine.case(**{**case.labels, "history": "30"}))
        for case in engine.find(history="3000")
    ]
    return max((ratio for ratio in ratios if ratio is not None), default=None)


_PACED: Final = {"path": "records", "work": "engine", "rate": "2,000"}

TARGETS: Final = (
    Target(
        "streak, single records: x Quix",
        2.0,
        _ratio("worker", "rate", OURS | STREAK | SINGLE, QUIX | STREAK | SINGLE),
    ),
    Target(
        "streak, single records: x Kafka Streams",
        1.1,
        _ratio(
            "worker", "rate", OURS | STREAK | SINGLE, {"peer": "kafka_streams"} | STREAK | SINGLE
        ),
    ),
    Target(
        "streak, frames of 50: x Quix (single records)",
        3.0,
        _ratio("worker", "rate", OURS | STREAK | FRAMES, QUIX | STREAK | SINGLE),
    ),
    Target(
        "streak, frames of 50: x limit",
        0.6,
        _ratio("worker", "rate", OURS | STREAK | FRAMES, LIMIT | STREAK | FRAMES),
    ),
    Target(
        "engine, single records: x Quix running it",
        1.5,
        _ratio("worker", "rate", OURS | ENGINE | SINGLE, QUIX | ENGINE | SINGLE),
    ),
    Target(
        "engine, frames of 50: x Quix running it (single records)",
        1.5,
        _ratio("worker", "rate", OURS | ENGINE | FRAMES, QUIX | ENGINE | SINGLE),
    ),
    Target(
        "engine, single records: x limit running it",
        0.5,
        _ratio("worker", "rate", OURS | ENGINE | SINGLE, LIMIT | ENGINE | SINGLE),
    ),
    Target(
        "engine, frames of 50: x limit running it",
        0.5,
        _ratio("worker", "rate", OURS | ENGINE | FRAMES, LIMIT | ENGINE | FRAMES),
    ),
    Target(
        "verdict delay at 2,000/s, p50 ms",
        10.0,
        _median("delay", "p50", **OURS | _PACED),
        most=True,
    ),
    Target(
        "verdict delay at 2,000/s, p99 ms",
        25.0,
        _median("delay", "p99", **OURS | _PACED),
        most=True,
    ),
    Target(
        "verdict delay at 2,000/s, p99 x Quix",
        1.2,
        _ratio("delay", "p99", OURS | _PACED, QUIX | _PACED),
        most=True,
    ),
    Target(
        "failover: another takes over, s",
        15.0,
        _median("failover", "gap_s", way="another takes over, 0 standbys"),
        most=True,
    ),
    Target(
        "failover: the static member comes back, s",
        5.0,
        _median("failover", "gap_s", way="the static member comes back"),
        most=True,
    ),
    Target(
        "recovery: records/s",
        150_000,
        _median("recovery", "records_per_s", rows="1,000,000", changelog="as written"),
    ),
    Target(
        "recovery: 1,000,000 rows, ready after s",
        10.0,
        _median("recovery", "ready_s", rows="1,000,000", changelog="compacted"),
        most=True,
    ),
    Target(
        "engine: steps/s from fingerprints",
        200_000,
        _median("engine", "rate", source="prints", mix="healthy", history="30"),
    ),
    Target(
        "engine: steps/s from raw events",
        50_000,
        _median("engine", "rate", source="raw", mix="healthy", history="30"),
    ),
    Target(
        "engine: shared vectors read from JSON, steps/s (Node reference)",
        38_000,
        _median("engine", "rate", source="vectors, read from JSON"),
    ),
    Target("engine: cost with history 3,000 x 30, worst mix", 1.2, _worst_history, most=True),
    Target(
        "SDK: before_call with 1 kB of arguments, p50 us",
        100.0,
        _median("sdk", "p50_us", what="before_call, 1 kB of arguments"),
        most=True,
    ),
    Target(
        "SDK: events/s of one process",
        10_000,
        _median("sdk", "rate", what="50 runs, one thread, all confirmed"),
    ),
    Target(
        "1,000,000 live runs: rate x 1,000, in bursts",
        0.8,
        _ratio(
            "scale",
            "rate",
            {"order": "bursts", "runs": "1,000,000"},
            {"order": "bursts", "runs": "1,000"},
        ),
    ),
    Target(
        "1,000,000 live runs: rate x 1,000, each event another run's",
        0.8,
        _ratio(
            "scale",
            "rate",
            {"order": "in turn", "runs": "1,000,000"},
            {"order": "in turn", "runs": "1,000"},
        ),
    ),
    Target(
        "row of 30 different calls, B",
        2_560,
        _median("rows", "row_bytes", mix="healthy", calls="30"),
        most=True,
    ),
    Target(
        "row of a loop, B", 600, _median("rows", "row_bytes", mix="looping", calls="30"), most=True
    ),
    Target(
        "changelog bytes x input bytes, one event per run and second",
        1.5,
        _median("changelog", "x_input", events_per_run_s="1", longest_s="10"),
        most=True,
    ),
)


def rows(results: Results) -> Iterator[tuple[str, str, float | None, bool | None]]:
    """What, the bound as text, what was measured, whether that will do."""
    for target in TARGETS:
        value = target.measure(results)
        bound = f"{'at most' if target.most else 'at least'} {target.bound:,g}"
        yield target.what, bound, value, None if value is None else target.met(value)
