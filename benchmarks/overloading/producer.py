"""Sends single-event records of the engine work at a rate, whoever may keep up.

A process of its own, run by `benchmarks.overload`; one JSON line on stdout.
"""

from __future__ import annotations

import argparse
import json
from typing import Final

import msgpack
from confluent_kafka import Producer

from benchmarks import work
from benchmarks.delaying.expect import FOREVER
from benchmarks.kit.kafka import PARTITIONS
from benchmarks.kit.pace import paced
from loopstream.wire.routing import partition_of

AT_ONCE: Final = 500


def main() -> None:
    """Send, tell how many."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--runs", type=int, required=True)
    parser.add_argument("--partition", type=int, help="only runs of this one")
    given = parser.parse_args()
    producer = Producer(
        {"bootstrap.servers": given.bootstrap, "linger.ms": 20, "compression.type": "lz4"}
    )
    places: dict[str, int] = {}
    sent = 0
    source = work.engine_events(FOREVER, given.runs)
    for due in paced(given.rate, given.seconds):
        done = 0
        while done < due:
            run, event = next(source)
            place = places.get(run)
            if place is None:
                place = places[run] = partition_of(run, PARTITIONS)
            if given.partition not in {None, place}:
                continue
            _send(producer, given.topic, bytes(msgpack.packb(event)), run.encode(), place)
            done += 1
            if not done % AT_ONCE:
                producer.poll(0)
        sent += done
        producer.poll(0)
    producer.flush()
    print(json.dumps({"sent": sent}))


def _send(producer: Producer, topic: str, value: bytes, key: bytes, partition: int) -> None:
    while True:
        try:
            producer.produce(topic, value, key, partition)
        except BufferError:
            producer.poll(0.05)
        else:
            return


if __name__ == "__main__":
    main()
