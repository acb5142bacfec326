"""The fault harness: a workload, worker processes to hurt, and an oracle that forgives nothing.

The oracle folds the whole events topic in this process and compares sets: verdict ids and rows.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgpack
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError

from loopstream.policy.deployment import Deployment
from loopstream.runtime.admin import ensure_topics
from loopstream.runtime.rows import MemoryRows, Merge
from loopstream.runtime.seal import SEAL_KEY
from loopstream.runtime.topics import Topics
from loopstream.wire.connection import Connection
from loopstream.wire.routing import partition_of
from loopstream.wire.verdicts import decode_dead_letter
from tests.faults.chain import ChainFold, row_position

PATIENCE_S = 90.0
_WORKER = Path(__file__).with_name("chain_worker.py")


def wait_for(what: str, condition: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    """Wait until a condition holds; fails with ``what`` if it never does."""
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {patience_s:g} s")
        time.sleep(0.05)


class Worker:
    """One worker process."""

    def __init__(self, cluster: Cluster, name: str, **settings: Any) -> None:
        self.name = name
        self._stats = cluster.folder / f"{name}.json"
        self._log = cluster.folder / f"{name}.log"
        given = {
            "bootstrap": cluster.bootstrap,
            "prefix": cluster.prefix,
            "stats": str(self._stats),
            "session_timeout_s": 6.0,
            "heartbeat_interval_s": 1.0,
            "checkpoint_interval_s": 0.3,
            "checkpoint_max_interval_s": 0.3,
            **settings,
        }
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(_WORKER), json.dumps(given)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self, patience_s: float = 30.0) -> int:
        """SIGTERM; the exit code."""
        self.signal(signal.SIGTERM)
        return self.process.wait(patience_s)

    def wait(self, patience_s: float = PATIENCE_S) -> int:
        return self.process.wait(patience_s)

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    @property
    def stats(self) -> dict[str, Any]:
        """The last counters that it wrote; empty before the first."""
        try:
            stats: dict[str, Any] = json.loads(self._stats.read_text())
        except FileNotFoundError:
            return {}
        return stats

    @property
    def log(self) -> str:
        """The end of what it said."""
        return self._log.read_text(errors="replace")[-4000:]

    def wait_records(self, count: int) -> None:
        """Wait until it has applied that many records."""
        wait_for(
            f"{self.name}: {count} records; {self}",
            lambda: self.stats.get("records", 0) >= count or not self.alive,
        )
        assert self.alive, str(self)

    def wait_lanes(self, count: int) -> None:
        """Wait until it holds that many partitions."""
        wait_for(
            f"{self.name}: {count} partitions; {self}",
            lambda: len(self.stats.get("lanes", ())) == count or not self.alive,
        )
        assert self.alive, str(self)

    def __str__(self) -> str:
        code = self.process.poll()
        return f"{self.name}: exit {code}, stats {self.stats}\n{self.log}"


@dataclass
class Outcome:
    """What the topics hold against what they should hold."""

    expected: set[str]
    seen: Counter[str]
    wrong_rows: list[str]
    dead_letters: set[tuple[int, int]]
    expected_dead_letters: set[tuple[int, int]]
    records: int
    workers: list[Worker] = field(default_factory=list)

    def assert_exact(self) -> None:
        """Nothing lost, nothing made up, no wrong row; repeated verdicts are allowed."""
        lost = self.expected - self.seen.keys()
        phantom = self.seen.keys() - self.expected
        summary = (
            f"records={self.records} verdicts={len(self.expected)} lost={len(lost)} "
            f"phantom={len(phantom)} repeated={self.seen.total() - len(self.seen)} "
            f"wrong_rows={self.wrong_rows[:5]}"
        )
        detail = summary + "\n" + "\n".join(map(str, self.workers))
        assert not lost, detail
        assert not phantom, detail
        assert not self.wrong_rows, detail
        assert self.dead_letters == self.expected_dead_letters, detail
        assert self.expected, detail


class Cluster:
    """One prefix on a broker: its topics, workload, workers and oracle."""

    def __init__(
        self, bootstrap: str, prefix: str, folder: Path, *, partitions: int = 4, seed: int = 1
    ) -> None:
        self.bootstrap = bootstrap
        self.prefix = prefix
        self.folder = folder
        self.partitions = partitions
        self.topics = Topics(prefix)
        self.random = random.Random(seed)
        self.workers: list[Worker] = []
        ensure_topics(Connection(bootstrap=(bootstrap,)), prefix, partitions)

    def worker(self, name: str | None = None, **settings: Any) -> Worker:
        """Start a worker."""
        worker = Worker(self, name or f"w{len(self.workers)}", **settings)
        self.workers.append(worker)
        return worker

    @property
    def any_alive(self) -> bool:
        return any(worker.alive for worker in self.workers)

    def close(self) -> None:
        """End all workers."""
        for worker in self.workers:
            if worker.alive:
                worker.signal(signal.SIGCONT)
                worker.kill()

    def producer(self) -> KafkaProducer:
        return KafkaProducer(bootstrap_servers=self.bootstrap, linger_ms=5)

    def produce(self, count: int, *, runs: int = 50, frame: int = 1) -> None:
        """Write events at once."""
        with contextlib.closing(self.producer()) as producer:
            for value, partition in itertools.islice(self.events(runs, frame), count):
                producer.send(self.topics.events, value=value, partition=partition)
            producer.flush()

    def events(self, runs: int, frame: int) -> Iterator[tuple[bytes, int]]:
        """Values and partitions of random frames, for ever."""
        names: dict[int, list[str]] = {}
        for number in range(runs):
            name = f"run-{number}"
            names.setdefault(partition_of(name, self.partitions), []).append(name)
        for number in itertools.count():
            partition = self.random.choice(list(names))
            size = self.random.randint(1, frame)
            pairs = [[self.random.choice(names[partition]), number + at] for at in range(size)]
            yield msgpack.packb(pairs), partition

    @contextlib.contextmanager
    def load(
        self, per_second: int, *, runs: int = 50, frame: int = 3, poison: float = 0.0
    ) -> Iterator[Counter[str]]:
        """Write events in the background while the block runs."""
        stop, sent = threading.Event(), Counter[str]()

        def write() -> None:
            with contextlib.closing(self.producer()) as producer:
                for value, partition in self.events(runs, frame):
                    if stop.is_set():
                        producer.flush()
                        return
                    bad = self.random.random() < poison
                    data = self.random.randbytes(20) if bad else value
                    producer.send(self.topics.events, value=data, partition=partition)
                    sent["poison" if bad else "good"] += 1
                    if not sent.total() % max(per_second // 50, 1):
                        time.sleep(0.02)

        thread = threading.Thread(target=write)
        thread.start()
        try:
            yield sent
        finally:
            stop.set()
            thread.join()

    def write(self, topic: str, key: bytes, value: bytes | None, partition: int = 0) -> int:
        """Write one record; its offset."""
        with contextlib.closing(self.producer()) as producer:
            sent = producer.send(topic, key=key, value=value, partition=partition)
            offset: int = sent.get(30).offset
        return offset

    def wait_committed(self) -> None:
        """Wait until the group has committed the whole events topic."""
        group = f"{self.prefix}.worker"
        tps = [TopicPartition(self.topics.events, number) for number in range(self.partitions)]
        with contextlib.closing(
            KafkaConsumer(
                bootstrap_servers=self.bootstrap, group_id=group, enable_auto_commit=False
            )
        ) as consumer:

            def lag() -> dict[int, int]:
                ends = consumer.end_offsets(tps)
                return {
                    tp.partition: missing
                    for tp in tps
                    if (missing := ends[tp] - (consumer.committed(tp) or 0))
                }

            try:
                wait_for("all is committed", lambda: not self.any_alive or not lag())
                assert self.any_alive or not lag(), "no worker is alive"
            except AssertionError as error:
                text = "\n".join(map(str, self.workers))
                raise AssertionError(f"{error}; lag {lag()}\n{text}") from None

    def lag(self) -> int:
        """Records that the group has not committed yet; -1: the broker does not answer."""
        try:
            return self._lag()
        except KafkaError:
            return -1

    def _lag(self) -> int:
        group = f"{self.prefix}.worker"
        tps = [TopicPartition(self.topics.events, number) for number in range(self.partitions)]
        with contextlib.closing(
            KafkaConsumer(
                bootstrap_servers=self.bootstrap, group_id=group, enable_auto_commit=False
            )
        ) as consumer:
            ends = consumer.end_offsets(tps)
            return sum(ends[tp] - (consumer.committed(tp) or 0) for tp in tps)

    def committed(self) -> int:
        """Sum of committed offsets."""
        group = f"{self.prefix}.worker"
        with contextlib.closing(
            KafkaConsumer(
                bootstrap_servers=self.bootstrap, group_id=group, enable_auto_commit=False
            )
        ) as consumer:
            return sum(
                consumer.committed(TopicPartition(self.topics.events, number)) or 0
                for number in range(self.partitions)
            )

    def read(self, topic: str, partitions: int | None = None) -> list[Any]:
        """All records of a topic, partition by partition."""
        tps = [TopicPartition(topic, n) for n in range(partitions or self.partitions)]
        records: list[Any] = []
        with contextlib.closing(
            KafkaConsumer(bootstrap_servers=self.bootstrap, group_id=None, enable_auto_commit=False)
        ) as consumer:
            consumer.assign(tps)
            consumer.seek_to_beginning(*tps)
            ends = consumer.end_offsets(tps)
            while any((consumer.position(tp) or 0) < ends[tp] for tp in tps):
                for batch in consumer.poll(500).values():
                    records.extend(batch)
        return sorted(records, key=lambda record: (record.partition, record.offset))

    def outcome(self) -> Outcome:
        """Fold the whole topic here, and compare."""
        sources = _ReadSources(self.read(self.topics.config, 1))
        deployment = Deployment(prefix=self.prefix)
        folds = [
            ChainFold(deployment, number, self.partitions, MemoryRows(), sources, None)
            for number in range(self.partitions)
        ]
        events = self.read(self.topics.events)
        for record in events:
            assert folds[record.partition].apply(record)
        expected_rows = {
            (fold.number, key): row
            for fold in folds
            for key, row in fold.take_rows()
            if not key.startswith(b"\xff")
        }
        rows = self._rows()
        wrong = [
            f"{key!r}: {rows.get(key)!r} is not {expected_rows.get(key)!r}"
            for key in expected_rows.keys() | rows.keys()
            if rows.get(key) != expected_rows.get(key)
        ]
        verdicts = Counter(msgpack.unpackb(r.value)["id"] for r in self.read(self.topics.verdicts))
        letters = [decode_dead_letter(r.value) for r in self.read(self.topics.dead_letters)]
        return Outcome(
            expected={verdict.id for fold in folds for _, verdict in fold.verdicts},
            seen=verdicts,
            wrong_rows=wrong,
            dead_letters={(letter.partition, letter.offset) for letter in letters},
            expected_dead_letters={
                (letter.partition, letter.offset) for fold in folds for letter in fold.dead_letters
            },
            records=len(events),
            workers=self.workers,
        )

    def _rows(self) -> dict[tuple[int, bytes], bytes]:
        """The rows as the next owner would recover them."""
        stores = {number: MemoryRows() for number in range(self.partitions)}
        merges = {number: Merge(rows, row_position) for number, rows in stores.items()}
        for record in self.read(self.topics.changelog):
            merges[record.partition].apply([record])
        return {
            (number, key): row
            for number, rows in stores.items()
            for key in rows
            if not key.startswith(SEAL_KEY[:1]) and (row := rows.get(key)) is not None
        }


class _ReadSources:
    """Control sources that were read whole."""

    def __init__(self, config: list[Any]) -> None:
        self._records = {record.offset: record for record in config}

    def lookup(self, source: str, offset: int) -> Any:
        return self._records.get(offset) if source == "config" else None

    def next_offset(self, source: str) -> int:
        return 2**63


@contextlib.contextmanager
def paused(worker: Worker, seconds: float) -> Iterator[None]:
    """SIGSTOP a worker for the block and at least so many seconds: it becomes a zombie."""
    worker.signal(signal.SIGSTOP)
    until = time.monotonic() + seconds
    try:
        yield
        time.sleep(max(0.0, until - time.monotonic()))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker.process.pid, signal.SIGCONT)


Settings = Mapping[str, Any]
