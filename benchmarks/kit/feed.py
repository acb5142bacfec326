"""The input of the works: records in each framing, written before or while a peer runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal

from confluent_kafka import Producer

from benchmarks import work
from benchmarks.kit.kafka import PARTITIONS
from loopstream.wire.routing import partition_of

Kind = Literal["streak", "engine"]
Framing = Literal["frames of 50", "single msgpack", "single JSON"]
Record = tuple[int, bytes, bytes]
FRAME: Final = 50


def records(kind: Kind, framing: Framing, events: int, runs: int) -> Iterator[Record]:
    """(partition, key, value) of a work's events; a frame holds events of one partition."""
    if kind == "streak":
        one = work.streak_json if framing == "single JSON" else work.streak_record
        yield from framed(work.streak_events(events, runs), framing, one)
    else:
        yield from framed(work.engine_events(events, runs), framing, _engine_pack(framing))


def _engine_pack(framing: Framing) -> Any:
    if framing == "single JSON":
        return lambda events: work.engine_json(events[0])
    return work.engine_record


def framed(events: Iterator[tuple[str, Any]], framing: Framing, pack: Any) -> Iterator[Record]:
    """Events by run into records.

    Args:
        events: (run, item).
        framing: how many items a record holds.
        pack: makes the value of a list of items.
    """
    places: dict[str, int] = {}
    waiting: dict[int, list[Any]] = {}
    for run, item in events:
        partition = places.get(run)
        if partition is None:
            partition = places[run] = partition_of(run, PARTITIONS)
        if framing != "frames of 50":
            yield partition, run.encode(), pack([item])
            continue
        frame = waiting.setdefault(partition, [])
        frame.append(item)
        if len(frame) == FRAME:
            yield partition, b"", pack(frame)
            waiting[partition] = []
    for partition, frame in waiting.items():
        if frame:
            yield partition, b"", pack(frame)


def write(bootstrap: str, topic: str, source: Iterator[Record]) -> int:
    """Write records as fast as the broker takes them; bytes of their values."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "batch.size": 500_000})
    written = 0
    for partition, key, value in source:
        while True:
            try:
                producer.produce(topic, value, key or None, partition)
                break
            except BufferError:
                producer.poll(0.1)
        written += len(value)
        producer.poll(0)
    producer.flush()
    return written
