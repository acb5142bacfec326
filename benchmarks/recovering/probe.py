"""Gated calls in every partition, again and again: each is answered, so silence shows at once."""

from __future__ import annotations

import itertools
import threading
import time
from collections import defaultdict
from typing import Any, Final

import msgpack
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from benchmarks.kit.kafka import PARTITIONS
from benchmarks.kit.waiting import wait_for
from benchmarks.stepping.mixes import digest
from loopstream.runtime.topics import Topics
from loopstream.wire.routing import partition_of
from loopstream.wire.verdicts import decode_verdict

EVERY_S: Final = 0.05


class Probe:
    """One run a partition asks 20 times a second; who answers is heard.

    Attributes:
        answered: for each partition (sent, received) of each answer, by the monotonic clock.
    """

    def __init__(self, bootstrap: str, topics: Topics, partitions: tuple[int, ...] = ()) -> None:
        self.answered: dict[int, list[tuple[float, float]]] = defaultdict(list)
        self._topics = topics
        self._partitions = partitions or tuple(range(PARTITIONS))
        self._sent: dict[str, tuple[int, float]] = {}
        self._stop = threading.Event()
        self._bootstrap = bootstrap
        self._consumer = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
        parts = [TopicPartition(topics.verdicts, number) for number in range(PARTITIONS)]
        self._consumer.assign(parts)
        self._consumer.seek_to_end(*parts)
        for part in parts:
            self._consumer.position(part)
        self._threads = [threading.Thread(target=work) for work in (self._ask, self._listen)]
        for thread in self._threads:
            thread.start()

    def wait_answers(self, since: float, timeout_s: float = 180.0) -> None:
        """Wait until an event sent after a moment was answered in each partition."""
        wait_for("answers", lambda: all(self.first(n, since) for n in self._partitions), timeout_s)

    def first(self, partition: int, since: float) -> float | None:
        """When the first answer came to an event sent after a moment."""
        came = [received for sent, received in self.answered[partition] if sent > since]
        return min(came, default=None)

    def waits(self, partition: int, since: float) -> list[float]:
        """Milliseconds that each answer took."""
        answers = list(self.answered[partition])
        return [(received - sent) * 1000 for sent, received in answers if sent > since]

    def _ask(self) -> None:
        runs: dict[int, str] = {}
        for number in itertools.count():
            name = f"probe-{number}"
            if (partition := partition_of(name, PARTITIONS)) in self._partitions:
                runs.setdefault(partition, name)
            if len(runs) == len(self._partitions):
                break
        producer = KafkaProducer(bootstrap_servers=self._bootstrap, linger_ms=0)
        for seq in itertools.count():
            if self._stop.wait(EVERY_S):
                break
            for partition, run in runs.items():
                event = _gated(run, seq)
                self._sent[event["id"]] = (partition, time.monotonic())
                value = msgpack.packb(event)
                producer.send(self._topics.events, value=value, partition=partition)
        producer.close()

    def _listen(self) -> None:
        while not self._stop.is_set():
            for records in self._consumer.poll(50).values():
                now = time.monotonic()
                for record in records:
                    event = decode_verdict(record.value).evidence.event
                    if event in self._sent:
                        partition, sent = self._sent.pop(event)
                        self.answered[partition].append((sent, now))
        self._consumer.close(autocommit=False)

    def close(self) -> None:
        """Ask no more."""
        self._stop.set()
        for thread in self._threads:
            thread.join()


def _gated(run: str, seq: int) -> dict[str, Any]:
    fp = {"v": 1, "documented": {"args": digest(f"{run}/{seq}")}}
    return {
        "v": 1,
        "type": "tool_call",
        "id": f"{run}-{seq}",
        "run": run,
        "agent": "bench",
        "time": time.time_ns() // 1_000_000,
        "tool": "exec",
        "call_id": f"call-{seq}",
        "disposition": "gated",
        "fp": fp,
    }
