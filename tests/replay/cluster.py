"""A prefix on the broker, with real worker processes to hurt."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from loopstream.wire.codec import pack_frame
from loopstream.wire.routing import partition_of, scope_key
from loopstream.wire.verdicts import decode_verdict

PATIENCE_S = 90.0


class Cluster:
    """What a test does to a prefix."""

    def __init__(self, bootstrap: str, prefix: str, folder: Path, partitions: int) -> None:
        self.bootstrap = bootstrap
        self.prefix = prefix
        self.partitions = partitions
        self._folder = folder
        self._workers: list[subprocess.Popen[bytes]] = []

    def send(self, events: Iterable[dict[str, Any]], frame: int = 1) -> None:
        """Events in frames of so many, each on the partition of its run."""
        waiting: dict[int, list[dict[str, Any]]] = {}
        with self.producer() as producer:
            for event in events:
                scope = scope_key(event.get("run"), event.get("session")) or ""
                number = partition_of(scope, self.partitions)
                held = waiting.setdefault(number, [])
                held.append(event)
                if len(held) == frame:
                    self._frame(producer, number, waiting.pop(number))
            for number, held in waiting.items():
                self._frame(producer, number, held)
            producer.flush()

    def send_value(self, number: int, value: bytes) -> None:
        """One record as it is."""
        with self.producer() as producer:
            producer.send(f"{self.prefix}.events", value=value, partition=number).get(30)

    def _frame(self, producer: KafkaProducer, number: int, events: list[dict[str, Any]]) -> None:
        producer.send(f"{self.prefix}.events", value=pack_frame(events), partition=number)

    @contextlib.contextmanager
    def producer(self) -> Iterator[KafkaProducer]:
        client = KafkaProducer(bootstrap_servers=self.bootstrap, linger_ms=5)
        try:
            yield client
        finally:
            client.close()

    def worker(self, **settings: object) -> subprocess.Popen[bytes]:
        """Start one more worker process."""
        command = [sys.executable, "-m", "loopstream", "worker"]
        command += ["--bootstrap", self.bootstrap, "--prefix", self.prefix]
        for name, value in {"worker.session_timeout_s": 6, **settings}.items():
            command += ["--set", f"{name}={value}"]
        log = self._folder / f"worker-{len(self._workers)}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
                cwd=self._folder,
            )
        self._workers.append(process)
        return process

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        process.terminate()
        process.wait(60)

    def verdicts(self, topic: str | None = None) -> list[Any]:
        """All records of the verdict topic, decoded."""
        return [decode_verdict(r.value) for r in self.records(topic or f"{self.prefix}.verdicts")]

    def records(self, topic: str) -> list[Any]:
        client = KafkaConsumer(bootstrap_servers=self.bootstrap, group_id=None)
        parts = [TopicPartition(topic, n) for n in client.partitions_for_topic(topic) or ()]
        client.assign(parts)
        client.seek_to_beginning(*parts)
        ends = client.end_offsets(parts)
        found: list[Any] = []
        while any((client.position(part) or 0) < end for part, end in ends.items()):
            for records in client.poll(timeout_ms=500).values():
                found += records
        client.close()
        return found

    def wait_for(self, what: str, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, f"{what}: not within {PATIENCE_S} s\n{self.logs()}"
            time.sleep(0.2)

    def wait_judged(self, runs: Iterable[str]) -> None:
        """Wait until each of these runs has a block."""
        wanted = set(runs)

        def judged() -> bool:
            return wanted <= {v.run for v in self.verdicts() if v.action == "block"}

        self.wait_for("a block for each run", judged)

    def logs(self) -> str:
        logs = sorted(self._folder.glob("worker-*.log"))
        return "\n".join(log.read_text(errors="replace")[-2000:] for log in logs)

    def close(self) -> None:
        for process in self._workers:
            if process.poll() is None:
                process.kill()
                process.wait()
