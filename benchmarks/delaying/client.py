"""Sends events at a rate, and times the verdicts on them: one process, the same for each peer.

Run by `benchmarks.delay`; one JSON line on stdout.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.delaying.expect import EngineProbe, StreakProbe
from benchmarks.kit.kafka import PARTITIONS
from benchmarks.kit.pace import paced
from benchmarks.kit.stats import percentiles
from loopstream.wire.routing import partition_of

DRAIN_S = 2.0


class Ear:
    """Listens to the verdicts from now on."""

    def __init__(self, bootstrap: str, topic: str, probe: StreakProbe | EngineProbe) -> None:
        self.delays: list[tuple[float, float]] = []
        self._probe = probe
        self._stop = threading.Event()
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "ear", "enable.auto.commit": False}
        )
        parts = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        ends = [self._consumer.get_watermark_offsets(part, 10)[1] for part in parts]
        self._consumer.assign(
            [TopicPartition(topic, number, end) for number, end in enumerate(ends)]
        )
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self) -> None:
        while not self._stop.is_set():
            message = self._consumer.poll(0.1)
            if message is None or message.error():
                continue
            now = time.monotonic()
            took = self._probe.received(message.key() or b"", message.value() or b"", now)
            if took is not None:
                self.delays.append((now, took))

    def close(self) -> None:
        """Listen no more."""
        self._stop.set()
        self._thread.join()
        self._consumer.close()


def main() -> None:
    """Warm up, measure, tell."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--bootstrap", "--events", "--verdicts", "--work"):
        parser.add_argument(name, required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--runs", type=int, required=True)
    parser.add_argument("--warm-up", type=float, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    given = parser.parse_args()
    # Two threads share the interpreter: neither may hold it for the usual 5 ms.
    sys.setswitchinterval(0.0005)
    probe = StreakProbe(given.runs) if given.work == "streak" else EngineProbe(given.runs)
    ear = Ear(given.bootstrap, given.verdicts, probe)
    began = time.monotonic()
    sent, sent_bytes = send(given, probe)
    ended = time.monotonic()
    time.sleep(DRAIN_S)
    ear.close()
    measured = [took * 1000 for at, took in ear.delays if began + given.warm_up < at <= ended]
    print(
        json.dumps(
            {
                **percentiles(measured),
                "sent": sent,
                "sent_per_s": sent / (ended - began),
                "input_per_event": sent_bytes / sent,
            }
        )
    )


def send(given: argparse.Namespace, probe: StreakProbe | EngineProbe) -> tuple[int, int]:
    """Events at their rate; how many, and the bytes of their records."""
    producer = Producer({"bootstrap.servers": given.bootstrap, "linger.ms": 1})
    places: dict[str, int] = {}
    source: Any = probe.events()
    sent = written = 0
    for due in paced(given.rate, given.warm_up + given.seconds):
        for _ in range(due):
            run, event = next(source)
            place = places.get(run)
            if place is None:
                place = places[run] = partition_of(run, PARTITIONS)
            value = probe.pack(event)
            probe.sent(event, time.monotonic())
            producer.produce(given.events, value, run.encode(), place)
            written += len(value)
        sent += due
        producer.poll(0)
    producer.flush()
    return sent, written


if __name__ == "__main__":
    main()
