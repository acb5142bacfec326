"""What each benchmark's table shows: its columns, and which case its ratios are taken to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure as a column; ``spread``: least and greatest round beside the median."""

    name: str
    heading: str
    spread: bool = False


@dataclass(frozen=True, slots=True)
class Against:
    """A ratio of ``figure`` to the case that differs only in these labels."""

    heading: str
    figure: str
    labels: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Table:
    """One benchmark's table."""

    benchmark: str
    title: str
    text: str
    figures: tuple[Figure, ...]
    against: tuple[Against, ...] = ()


def _against(heading: str, figure: str, **labels: str) -> Against:
    return Against(heading, figure, tuple(labels.items()))


TABLES: Final = (
    Table(
        "worker",
        "Catch-up, beside peers",
        "A worker process finds its topic full; the clock runs from the first event until all is "
        "committed (the limit and FastStream keep nothing). Ratios are medians of the ratios "
        "within a round.",
        (
            Figure("rate", "events/s", spread=True),
            Figure("cpu_per_100k", "CPU s per 100k"),
            Figure("changelog_per_event", "changelog B/event"),
            Figure("input_per_event", "input B/event"),
            Figure("rss_mib", "RSS MiB"),
            Figure("verdicts", "verdicts"),
        ),
        (
            _against("x limit", "rate", peer="confluent_loop"),
            _against("x Quix", "rate", peer="quix"),
            _against("x Quix, single", "rate", peer="quix", framing="single msgpack"),
            _against("x Kafka Streams", "rate", peer="kafka_streams", framing="single msgpack"),
            _against("x Bytewax", "rate", peer="bytewax", framing="single msgpack"),
        ),
    ),
    Table(
        "engine",
        "The engine alone",
        "Steps a second of processor time on one core, verdicts included.",
        (Figure("rate", "steps/s", spread=True), Figure("us", "us a step")),
        (_against("cost x history 30", "us", history="30"),),
    ),
    Table(
        "delay",
        "Verdict delay",
        "From just before an event is handed to the producer until its verdict is received, in ms, "
        "while events arrive at a rate. `records`: single-event records by librdkafka, no linger "
        "to speak of, the same client for each peer. `sdk`: through `Runner` on both ways, with "
        "its linger of 10 ms. `gate`: `before_call(wait=…)`, what an agent waits for an answer.",
        (
            Figure("p50", "p50 ms", spread=True),
            Figure("p99", "p99 ms", spread=True),
            Figure("max", "max ms"),
            Figure("count", "verdicts"),
            Figure("sent_per_s", "events/s sent"),
            Figure("changelog_per_event", "changelog B/event"),
        ),
        (
            _against("p99 x limit", "p99", peer="confluent_loop"),
            _against("p99 x Quix", "p99", peer="quix"),
        ),
    ),
    Table(
        "changelog",
        "Changelog bytes by checkpoint interval",
        "A worker under paced load: what a longer interval saves, and what a crash then costs to "
        "replay at most.",
        (
            Figure("changelog_per_event", "changelog B/event", spread=True),
            Figure("input_per_event", "input B/event"),
            Figure("x_input", "x input"),
            Figure("rows_per_event", "rows/event"),
            Figure("replay_events", "events to replay"),
        ),
    ),
    Table(
        "scale",
        "Live runs",
        "The fold of one partition without Kafka (`loopstream.partition.Partition`), rows in "
        "memory, checkpoints at the worker's pace (10 s or 20,000 dirty rows). Every run's row "
        "is there before; it has 30 different calls. `in turn`: each event is another run's, the "
        "worst case. `bursts`: a run sends 20 events while 1,000 runs are busy at a time.",
        (
            Figure("rate", "events/s", spread=True),
            Figure("row_bytes", "row B"),
            Figure("stored_bytes", "memory B per run, row"),
            Figure("live_bytes", "memory B per run, live"),
            Figure("rss_mib", "RSS MiB"),
        ),
        (_against("rate x 1,000 runs", "rate", runs="1,000"),),
    ),
    Table(
        "rows",
        "Bytes of a row",
        "As the fold packs them.",
        (Figure("row_bytes", "row B"),),
    ),
    Table(
        "recovery",
        "Recovery",
        "A worker starts on a changelog. `ready`: from the start of the process until `/readyz`; "
        "`recovery`: of it, until its partitions were open, as the worker's own metric tells; "
        "`empty`: the same without rows (joining the group), so that records/s are those of the "
        "difference. `taken over`: one of two workers leaves; `recovery` is then the other's, from "
        "the loss of its old assignment until all partitions were open.",
        (
            Figure("ready_s", "ready s", spread=True),
            Figure("recovery_s", "recovery s", spread=True),
            Figure("empty_s", "empty s"),
            Figure("records", "changelog records"),
            Figure("records_per_s", "records/s"),
            Figure("mib", "changelog MiB"),
            Figure("rss_mib", "RSS MiB"),
        ),
    ),
    Table(
        "failover",
        "Failover",
        "kill -9 of a worker until a verdict on an event that was sent after it: the longest of "
        "the partitions that it held.",
        (Figure("gap_s", "gap s", spread=True), Figure("rows", "rows")),
    ),
    Table(
        "sdk",
        "The runner SDK",
        "Digests of 1 kB of arguments included.",
        (
            Figure("p50_us", "p50 us", spread=True),
            Figure("p99_us", "p99 us", spread=True),
            Figure("rate", "events/s"),
            Figure("cpu_us", "CPU us an event"),
        ),
    ),
    Table(
        "overload",
        "Overload",
        "Producers faster than the worker. RSS and lag are read each second; the catch-up starts "
        "when the producers stop, and ends when less than 100 records wait.",
        (
            Figure("rate", "events/s"),
            Figure("offered", "offered/s"),
            Figure("applied", "applied/s"),
            Figure("lag_max", "greatest lag"),
            Figure("catch_up_s", "catch-up s"),
            Figure("rss_begin_mib", "RSS MiB at first"),
            Figure("rss_peak_mib", "RSS MiB at most"),
            Figure("rebalances", "rebalances"),
            Figure("p50", "p50 ms"),
            Figure("p99", "p99 ms"),
            Figure("row_bytes", "row B"),
            Figure("dropped", "dropped"),
        ),
    ),
)
