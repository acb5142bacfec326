"""A deployment under test: its topics, its worker processes, and all that they say.

The worker runs as a subprocess, as an operator starts it; everything else is this process.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from loopstream.cli.config_push import Change, push_blocks
from loopstream.config import Settings, load, read_blocks
from loopstream.events import Control, DeadLetter, Verdict
from loopstream.runtime.admin import ensure_topics
from loopstream.runtime.topics import Topics
from loopstream.sdk import Runner
from loopstream.wire.codec import CONTENT_TYPE, decode_record, pack_frame
from loopstream.wire.routing import partition_of, scope_key
from loopstream.wire.verdicts import decode_dead_letter, decode_verdict

PATIENCE_S: Final = 90.0
STOP_S: Final = 30.0
PARTITIONS: Final = 3

Fields = dict[str, Any]


def wait_for(what: str, condition: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    """Wait until a condition holds; fails with ``what`` if it never does."""
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {patience_s:g} s")
        time.sleep(0.02)


def environment(**more: str) -> dict[str, str]:
    """This process's environment without its own settings of loopstream."""
    own = {name: text for name, text in os.environ.items() if not name.startswith("LOOPSTREAM_")}
    return own | {"PYTHONUNBUFFERED": "1"} | more


class Process:
    """A command as an operator starts it; what it says goes to a file."""

    def __init__(self, log: Path, command: list[str], env: Mapping[str, str] | None = None) -> None:
        self._log = log
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                command,
                cwd=log.parent,
                env=dict(env or environment()),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def said(self) -> str:
        return self._log.read_text(errors="replace")

    def kill(self) -> None:
        """As if the machine had lost power."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(STOP_S)

    def __str__(self) -> str:
        return f"exit {self._process.poll()}\n{self.said[-4000:]}"


class Ear:
    """Hears all of a topic from its begin, a piece further whenever it is asked."""

    def __init__(self, bootstrap: str, topic: str, partitions: int = PARTITIONS) -> None:
        self.records: list[Any] = []
        self._partitions = [TopicPartition(topic, number) for number in range(partitions)]
        self._client = KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=None,
            enable_auto_commit=False,
            fetch_max_wait_ms=25,  # questions wait until a fetch comes back
        )
        self._client.assign(self._partitions)
        self._client.seek_to_beginning(*self._partitions)

    def listen(self, longest_s: float = 0.05) -> None:
        """Hear what is there, waiting a moment for more."""
        for batch in self._client.poll(timeout_ms=int(longest_s * 1000)).values():
            self.records += batch

    def catch_up(self) -> None:
        """Hear everything up to the present end."""
        ends = self.ends()
        wait_for("the topic is read", lambda: self._reached(ends))

    def ends(self) -> dict[int, int]:
        return {tp.partition: end for tp, end in self._client.end_offsets(self._partitions).items()}

    def close(self) -> None:
        self._client.close()

    def _reached(self, ends: dict[int, int]) -> bool:
        self.listen(0.02)
        return all(
            (self._client.position(tp) or 0) >= ends[tp.partition] for tp in self._partitions
        )


class House:
    """One prefix on a broker.

    Args:
        folder: for logs and the workers' working directory.
        blocks: detector settings, pushed before the first worker starts; None: no settings.
        values: process settings of every worker, by key. Checkpoints are frequent unless they say
            otherwise: tests wait for commits.
    """

    def __init__(
        self,
        bootstrap: str,
        prefix: str,
        folder: Path,
        *,
        blocks: Mapping[str, Any] | None = None,
        values: Mapping[str, str] | None = None,
    ) -> None:
        self.bootstrap = bootstrap
        self.prefix = prefix
        self.folder = folder
        self.topics = Topics(prefix)
        self.workers: list[Process] = []
        often = ("worker.checkpoint_interval_s", "worker.checkpoint_max_interval_s")
        self._values = dict.fromkeys(often, "0.1") | dict(values or {})
        self._settings = load(
            {"bootstrap": bootstrap, "prefix": prefix, "partitions": PARTITIONS}
        ).settings
        ensure_topics(self._settings.connection, prefix, PARTITIONS)
        self._events = Ear(bootstrap, self.topics.events)
        self._verdicts = Ear(bootstrap, self.topics.verdicts)
        self._decoded: list[Verdict] = []
        self._dead_letters = Ear(bootstrap, self.topics.dead_letters)
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            acks="all",
            enable_idempotence=False,  # a refused record would spoil all that follow
            max_request_size=4 * 1024 * 1024,
        )
        self._group = KafkaConsumer(
            bootstrap_servers=bootstrap, group_id=f"{prefix}.worker", enable_auto_commit=False
        )
        if blocks is not None:
            self.push(blocks)

    def close(self) -> None:
        """Stop what runs and let go of Kafka."""
        for worker in self.workers:
            if worker.alive:
                worker.kill()
        for ear in (self._events, self._verdicts, self._dead_letters, self._group):
            ear.close()
        self._producer.close()

    # -- its workers -----------------------------------------------------------------------

    def start(self) -> Process:
        """Start a worker and wait until it judges."""
        name = f"worker-{len(self.workers)}"
        command = [sys.executable, "-m", "loopstream", "worker", *self.arguments()]
        worker = Process(self.folder / f"{name}.log", command)
        self.workers.append(worker)
        self.await_answer(worker)
        return worker

    def arguments(self) -> list[str]:
        """Of every verb."""
        values = [f"{key}={value}" for key, value in self._values.items()]
        sets = [word for value in values for word in ("--set", value)]
        return ["--bootstrap", self.bootstrap, "--prefix", self.prefix, *sets]

    def await_answer(self, worker: Process) -> None:
        """Wait until a call at a gate is answered."""
        run = f"ready-{time.monotonic_ns()}"
        call = {"v": 1, "type": "tool_call", "time": 0, "run": run, "tool": "hello"}
        self.send_json(call | {"disposition": "gated"})

        def answered() -> bool:
            assert worker.alive, f"the worker ended: {worker}"
            return bool(self.verdicts(run))

        wait_for(f"the worker answers: {worker}", answered)

    # -- what is told to it ----------------------------------------------------------------

    @property
    def settings(self) -> Settings:
        """Process settings of the prefix."""
        return self._settings

    def push(self, document: Mapping[str, Any], *, prune: bool = False) -> list[Change]:
        """Push a settings document as ``loopstream config push`` does."""
        file = self.folder / "detectors.json"
        file.write_text(json.dumps(document))
        return push_blocks(self._settings, read_blocks(file), prune=prune)

    def runner(self, agent: str | None = None, **options: Any) -> Runner:
        """A runner of this deployment."""
        return Runner(self.bootstrap, agent=agent, prefix=self.prefix, **options)

    def partition(self, run: str) -> int:
        """Of a run's events and verdicts."""
        return partition_of(scope_key(run, None) or "", PARTITIONS)

    def run_on(self, partition: int, name: str) -> str:
        """A run id that belongs to a partition."""
        ids = (f"{name}-{number}" for number in range(1000))
        return next(run for run in ids if self.partition(run) == partition)

    def send(
        self,
        value: bytes | None,
        partition: int,
        *,
        content_type: bytes | None = None,
        key: bytes | None = None,
        headers: Iterable[tuple[str, bytes]] = (),
    ) -> int:
        """Write a record to the events; its offset."""
        told = [] if content_type is None else [(CONTENT_TYPE, content_type)]
        future = self._producer.send(
            self.topics.events, value=value, key=key, partition=partition, headers=[*told, *headers]
        )
        return int(future.get(timeout=PATIENCE_S).offset)

    def send_frame(self, events: list[Fields], partition: int | None = None) -> tuple[int, int]:
        """Write events in one frame to the partition of the first; partition and offset."""
        if partition is None:
            partition = self.partition_of(events[0])
        return partition, self.send(pack_frame(events), partition)

    def send_json(self, *events: Fields) -> None:
        """Write each event as a JSON record."""
        for event in events:
            self.send(json.dumps(event).encode(), self.partition_of(event))

    def partition_of(self, event: Fields) -> int:
        """The partition that an event belongs to."""
        return partition_of(scope_key(event.get("run"), event.get("session")) or "", PARTITIONS)

    def write_config(self, key: str, value: bytes | None) -> int:
        """Write straight to the config topic, past all checks; the offset."""
        future = self._producer.send(self.topics.config, key=key.encode(), value=value)
        return int(future.get(timeout=PATIENCE_S).offset)

    # -- what it says ----------------------------------------------------------------------

    def verdicts(self, run: str | None, session: str | None = None) -> list[Verdict]:
        """What has been said of a run so far, each once."""
        scope = scope_key(run, session)
        said = (verdict for verdict in self.all_verdicts() if verdict.scope == scope)
        return list({verdict.id: verdict for verdict in said}.values())

    def all_verdicts(self) -> list[Verdict]:
        """All verdicts heard so far, repeated ones too, in the order of the topic."""
        self._verdicts.listen()
        for record in self._verdicts.records[len(self._decoded) :]:
            content_type = dict(record.headers).get(CONTENT_TYPE)
            self._decoded.append(decode_verdict(record.value, content_type))
        return self._decoded

    def hear(self, run: str, count: int) -> list[Verdict]:
        """Wait for so many verdicts on a run."""
        wait_for(f"{count} verdicts on {run}", lambda: len(self.verdicts(run)) >= count)
        return self.verdicts(run)

    def dead_letters(self) -> list[DeadLetter]:
        """All dead letters, in the order of the topic."""
        self._dead_letters.catch_up()
        return [decode_dead_letter(record.value) for record in self._dead_letters.records]

    def summaries(self) -> dict[str, Fields]:
        """The newest record of each run, by scope key."""
        ear = Ear(self.bootstrap, self.topics.runs)
        try:
            ear.catch_up()
            return {record.key.decode(): json.loads(record.value) for record in ear.records}
        finally:
            ear.close()

    def largest_row(self) -> int:
        """Bytes of the largest row in the changelog."""
        ear = Ear(self.bootstrap, self.topics.changelog)
        try:
            ear.catch_up()
            return max((len(record.value or b"") for record in ear.records), default=0)
        finally:
            ear.close()

    def events(self) -> list[Any]:
        """All records of the events topic."""
        self._events.catch_up()
        return sorted(self._events.records, key=lambda record: (record.partition, record.offset))

    def copies(self, offset: int) -> set[tuple[int, int]]:
        """Where a record of the config topic was copied to: partitions and offsets."""
        return {
            (record.partition, record.offset)
            for record in self.events()
            for event in decode_record(record.value).events
            if isinstance(event, Control) and event.offset == offset
        }

    def await_settings(self, offset: int) -> None:
        """Wait until a record of the config topic is in force in every partition."""
        everywhere = set(range(PARTITIONS))
        wait_for(
            f"config offset {offset} is in the events",
            lambda: {partition for partition, _ in self.copies(offset)} == everywhere,
        )
        self.settle()

    def settle(self) -> None:
        """Wait until all events are judged and committed, and hear what was said."""
        wait_for(f"all is committed; {self.workers[-1]}", lambda: not self.lag())
        self._verdicts.catch_up()

    def lag(self) -> int:
        """Records that the workers have not committed yet."""
        return sum(
            end - (self._group.committed(TopicPartition(self.topics.events, number)) or 0)
            for number, end in self._events.ends().items()
        )


@contextlib.contextmanager
def open_house(
    bootstrap: str, prefix: str, folder: Path, *, workers: int = 1, **how: Any
) -> Iterator[House]:
    """A house with a worker; afterwards it must still live, and stop as it should."""
    house = House(bootstrap, prefix, folder, **how)
    try:
        for _ in range(workers):
            house.start()
        yield house
        for worker in house.workers[-workers:]:
            assert worker.alive, f"the worker ended: {worker}"
            assert worker.stop() == 0, str(worker)
            assert "Traceback" not in worker.said, str(worker)
    finally:
        house.close()


def actions(verdicts: Iterable[Verdict]) -> list[tuple[str, str, int]]:
    """What verdicts say, in short: action, detector, count."""
    return [(str(verdict.action), verdict.detector, verdict.count) for verdict in verdicts]
