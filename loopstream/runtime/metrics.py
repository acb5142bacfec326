"""The Prometheus metrics of a worker: one table of names, read when somebody scrapes.

Nothing is counted here. Counters belong to the process; what is told per partition is told for the
partitions held now, so a revoked one's series ends with the next scrape.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import Final, Literal, Protocol

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from loopstream import __version__
from loopstream.build import engine_build
from loopstream.events import RejectCode
from loopstream.runtime.lanes import Lanes
from loopstream.runtime.measures import Histogram
from loopstream.runtime.stats import Stats

PREFIX: Final = "loopstream_"
SUPPRESSED: Final = ("duplicate", "replayed", "throttled")
"""Why an event or a warning had no effect, on purpose."""
NOTES: Final = ("after_end", "expired", "foreign_pin", "gap", "oversize")
"""What the fold notes about events that count all the same."""

Kind = Literal["counter", "gauge", "histogram", "info"]
Labels = tuple[str, ...]
Values = Iterable[tuple[Labels, float]]


class Watched(Protocol):
    """What the metrics read of a worker."""

    @property
    def stats(self) -> Stats:
        """Its counters."""
        ...

    @property
    def lanes(self) -> Lanes:
        """The partitions that it holds."""
        ...

    def build(self) -> tuple[str, str]:
        """Profile and mode of the deployment."""
        ...

    def lags(self) -> Iterable[tuple[int, int]]:
        """Partition, and records in it that are not yet applied."""
        ...

    def levels(self) -> tuple[int, int, float]:
        """Records buffered, messages not yet confirmed, time of the last checkpoint."""
        ...

    def healthy(self) -> tuple[bool, bool]:
        """Whether it is alive, and whether it is ready."""
        ...


@dataclass(frozen=True, slots=True)
class Metric:
    """One family: its name without prefix and ``_total``, and how it is read."""

    name: str
    kind: Kind
    help: str
    labels: Labels = ()
    values: Callable[[Watched], Values] | None = None
    histogram: Callable[[Watched], Histogram] | None = None

    @property
    def full_name(self) -> str:
        """The name as it is scraped; of a histogram the part before ``_bucket``."""
        suffix = {"counter": "_total", "info": "_info"}.get(self.kind, "")
        return f"{PREFIX}{self.name}{suffix}"

    def read(self, worker: Watched) -> Family:
        """The family with the values of this moment."""
        family = Family(PREFIX + self.name, self.help, self.kind)
        if self.histogram is not None:
            _add_histogram(family, self.histogram(worker))
        elif self.values is not None:
            for labels, value in self.values(worker):
                family.add_sample(
                    self.full_name, dict(zip(self.labels, labels, strict=True)), value
                )
        return family


def _add_histogram(family: Family, seen: Histogram) -> None:
    total = 0
    for bound, total in seen.buckets():
        family.add_sample(f"{family.name}_bucket", {"le": bound}, total)
    family.add_sample(f"{family.name}_count", {}, total)
    family.add_sample(f"{family.name}_sum", {}, seen.sum)


def _count(name: str, text: str, read: Callable[[Stats], float]) -> Metric:
    return Metric(name, "counter", text, values=lambda worker: [((), read(worker.stats))])


def _level(name: str, text: str, read: Callable[[Watched], float]) -> Metric:
    return Metric(name, "gauge", text, values=lambda worker: [((), read(worker))])


def _noted(names: tuple[str, ...]) -> Callable[[Watched], Values]:
    return lambda worker: [((name,), worker.stats.notes[name]) for name in names]


def _rejected(worker: Watched) -> Values:
    return [((code.value,), worker.stats.rejects[code]) for code in RejectCode]


def _build(worker: Watched) -> Values:
    python = ".".join(str(part) for part in sys.version_info[:3])
    built = (__version__, version("faust-streaming"), python, engine_build())
    return [((*built, *worker.build()), 1)]


def _age(worker: Watched) -> float:
    return max(0.0, time.monotonic() - worker.levels()[2])


def _lane_values(read: Callable[[Lanes], Values]) -> Callable[[Watched], Values]:
    return lambda worker: read(worker.lanes)


METRICS: Final = (
    _count("records_consumed", "Records of the events topic applied.", lambda s: s.records),
    _count(
        "events_consumed",
        "Events of runs applied; a record may hold many.",
        lambda s: s.notes["applied"],
    ),
    Metric(
        "events_rejected",
        "counter",
        "Events or whole records refused, each with a dead letter.",
        ("reason",),
        values=_rejected,
    ),
    Metric(
        "suppressed",
        "counter",
        "Events without effect (duplicate, replayed after a crash), warnings not repeated.",
        ("reason",),
        values=_noted(SUPPRESSED),
    ),
    Metric(
        "events_noted",
        "counter",
        "Peculiarities of events that count all the same.",
        ("note",),
        values=_noted(NOTES),
    ),
    Metric(
        "verdicts",
        "counter",
        "Verdicts decided.",
        ("detector", "action", "mode"),
        values=lambda worker: dict(worker.stats.measures.verdicts).items(),
    ),
    Metric(
        "verdict_delay_seconds",
        "histogram",
        "From the append of an event until its verdict was durable on the topic.",
        histogram=lambda worker: worker.stats.measures.verdict_delay_seconds,
    ),
    Metric(
        "step_seconds",
        "histogram",
        "Time to apply a record: the mean of its slice of up to 500.",
        histogram=lambda worker: worker.stats.measures.step_seconds,
    ),
    Metric(
        "lag_records",
        "gauge",
        "Records of a partition held that are not applied yet.",
        ("partition",),
        values=lambda worker: [((str(number),), lag) for number, lag in worker.lags()],
    ),
    Metric(
        "runs_active",
        "gauge",
        "Runs with a row: not idle for too long, not past the grace after their end.",
        ("partition",),
        values=_lane_values(lambda lanes: [((str(x.number),), x.rows.count) for x in lanes]),
    ),
    Metric(
        "rows_dirty",
        "gauge",
        "Rows changed since the last checkpoint.",
        ("partition",),
        values=_lane_values(lambda lanes: [((str(x.number),), x.fold.dirty) for x in lanes]),
    ),
    _level("partitions_assigned", "Partitions open here.", lambda worker: len(worker.lanes)),
    Metric(
        "row_bytes",
        "histogram",
        "Size of the rows written to the changelog.",
        histogram=lambda worker: worker.stats.measures.row_bytes,
    ),
    _count("rows_written", "Rows written to the changelog.", lambda s: s.rows),
    _count("rows_erased", "Rows of dead runs erased.", lambda s: s.tombstones),
    _count(
        "rows_reasserted",
        "Rows written again because a late writer's was the last in the changelog.",
        lambda s: s.reasserted,
    ),
    _count("summaries_written", "Run summaries written.", lambda s: s.summaries),
    _count("checkpoints", "Checkpoints taken.", lambda s: s.checkpoints),
    _count(
        "checkpoints_abandoned",
        "Checkpoints given up because the assignment went.",
        lambda s: s.checkpoints_abandoned,
    ),
    Metric(
        "checkpoint_seconds",
        "histogram",
        "Duration of a checkpoint.",
        histogram=lambda worker: worker.stats.measures.checkpoint_seconds,
    ),
    _level("checkpoint_age_seconds", "Time since a checkpoint, or since none was due.", _age),
    Metric(
        "recovery_seconds",
        "histogram",
        "From the loss of an assignment, or the start, until the next one's partitions were open.",
        histogram=lambda worker: worker.stats.measures.recovery_seconds,
    ),
    _count("rebalances", "Assignments taken away.", lambda s: s.rebalances),
    _count("batches_stale", "Batches dropped: the assignment went.", lambda s: s.stale_batches),
    _count(
        "offsets_jumped",
        "Offsets that the log itself does not have: retention, transaction markers.",
        lambda s: s.jumps,
    ),
    _count("fetch_pauses", "Times that fetching paused for want of room.", lambda s: s.blocked),
    _count(
        "controls_appended",
        "Settings and commands copied into the events.",
        lambda s: s.controls,
    ),
    _count("pins_appended", "Fresh partitions pinned.", lambda s: s.pins),
    _level(
        "records_buffered",
        "Records fetched and not yet applied.",
        lambda worker: worker.levels()[0],
    ),
    _level(
        "messages_unconfirmed",
        "Verdicts and dead letters not yet confirmed by the broker.",
        lambda worker: worker.levels()[1],
    ),
    _level("live", "1 while /livez says so.", lambda worker: worker.healthy()[0]),
    _level("ready", "1 while /readyz says so.", lambda worker: worker.healthy()[1]),
    Metric(
        "build",
        "info",
        "Versions, and what this worker is set to.",
        ("version", "faust", "python", "engine", "profile", "mode"),
        values=_build,
    ),
)


class WorkerCollector(Collector):
    """Reads a worker when a registry is scraped."""

    def __init__(self, worker: Watched) -> None:
        self._worker = worker

    def collect(self) -> Iterator[Family]:
        """All families, in the order of `METRICS`."""
        return (metric.read(self._worker) for metric in METRICS)

    def describe(self) -> Iterator[Family]:
        """The families' names: nothing has to be read to register the collector."""
        return (Family(PREFIX + metric.name, metric.help, metric.kind) for metric in METRICS)


class Exposition:
    """A worker's metrics, and those of its process, in Prometheus' text format."""

    def __init__(self, worker: Watched) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(WorkerCollector(worker))
        ProcessCollector(registry=self._registry)

    def text(self) -> bytes:
        """The values of this moment."""
        return generate_latest(self._registry)
