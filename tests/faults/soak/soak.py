"""Runs a soak: broker, fleet, load and oracle, and the faults in between."""

from __future__ import annotations

import argparse
import heapq
import itertools
import json
import signal
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError

from loopstream.broker import EmbeddedKafka
from loopstream.runtime.admin import ensure_topics
from loopstream.runtime.topics import Topics
from loopstream.wire.connection import Connection
from tests.faults.soak.fleet import ASKED_FOR, Fleet, Worker
from tests.faults.soak.oracle import Oracle
from tests.faults.soak.plan import POISON, Fault, draw
from tests.faults.soak.report import Outcome, Sample, measure
from tests.faults.soak.traffic import AGENTS, Load

PREFIX: Final = "soak"
PATIENCE_S: Final = 300.0
_SAMPLE_S: Final = 10.0
_TICK_S: Final = 0.1
# Real compaction under way, yet with a lag that outlives every zombie of the plan.
_CHANGELOG: Final = {
    "min.compaction.lag.ms": "120000",
    "segment.ms": "60000",
    "min.cleanable.dirty.ratio": "0.2",
}


class Soak:
    """One soak; a context manager, so that nothing stays behind."""

    def __init__(self, options: argparse.Namespace, folder: Path, command: str) -> None:
        self._options = options
        self._command = command
        self._begun = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        self._topics = Topics(PREFIX)
        self._faults: Counter[str] = Counter()
        self._samples: list[Sample] = []
        self._troubles: list[str] = []
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._turn = itertools.count()
        self._early = False
        self._broker = EmbeddedKafka(folder / "kafka")
        self._broker.start(timeout=180)
        bootstrap = self._broker.bootstrap
        self._prepare(bootstrap)
        self._fleet = Fleet(bootstrap, PREFIX, folder, options.workers)
        self._oracle = Oracle(bootstrap, self._topics, options.partitions)
        self._load = Load(
            bootstrap,
            self._topics.events,
            options.partitions,
            seed=options.seed,
            per_second=options.per_second,
            runs=options.runs,
            poison=options.intensity * (POISON in options.faults),
        )
        self._operator = KafkaProducer(bootstrap_servers=bootstrap)
        self._group = KafkaConsumer(
            bootstrap_servers=bootstrap, group_id=f"{PREFIX}.worker", enable_auto_commit=False
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._fleet.kill()
        for client in (self._operator, self._group):
            client.close()
        self._oracle.close()
        self._broker.stop()

    def run(self) -> Outcome:
        """Run it to its end."""
        self._fleet.tend()
        self._until("all partitions are pinned", lambda: all(self._ends()))
        self._oracle.start()
        self._load.start()
        started = time.monotonic()
        options = self._options
        for fault in draw(options.seed, options.minutes, options.faults, options.intensity):
            self._at(started + fault.at_s, self._action(fault))
        self._play(started)
        self._load.end()
        seconds = time.monotonic() - started
        self._until("all is committed", lambda: self._lag() == 0)
        self._note_exits(self._fleet.close())
        self._oracle.end()
        return self._outcome(seconds)

    def finish(self) -> None:
        """Come to an end now (from a signal handler): no more faults, no more load."""
        self._early = True

    # -- time ------------------------------------------------------------------------------

    def _play(self, started: float) -> None:
        end, next_sample = started + self._options.minutes * 60, started
        while not self._early and ((now := time.monotonic()) < end or self._agenda):
            self._fleet.tend()
            self._broker.start(timeout=180)  # does nothing if it runs
            if now >= next_sample:
                next_sample = now + _SAMPLE_S
                self._sample(now - started)
            if self._agenda and self._agenda[0][0] <= now:
                heapq.heappop(self._agenda)[2]()
            for what in (self._load, self._oracle):
                if what.failure is not None:
                    raise what.failure
            time.sleep(_TICK_S)
        self._fleet.settle()

    def _at(self, moment: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (moment, next(self._turn), action))

    def _until(self, what: str, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            self._fleet.tend()
            if time.monotonic() > deadline:
                self._troubles.append(f"{what}: not within {PATIENCE_S:g} s")
                return
            time.sleep(0.5)

    # -- faults ----------------------------------------------------------------------------

    def _action(self, fault: Fault) -> Callable[[], None]:
        actions: dict[str, Callable[[Fault], None]] = {
            "kill": self._kill,
            "join": self._join,
            "zombie": self._zombie,
            "broker": self._break_broker,
            "restart": self._restart,
            "settings": self._settings,
            "command": self._order,
        }
        return lambda: actions[fault.kind](fault)

    def _kill(self, fault: Fault) -> None:
        victim = self._fleet.victim(fault.pick)
        if victim is not None:
            self._faults["kill"] += 1
            victim.kill()

    def _join(self, fault: Fault) -> None:
        guest = self._fleet.join()
        self._faults["join"] += 1

        def leave() -> None:
            self._faults["leave"] += 1
            self._fleet.leave(guest)

        self._at(time.monotonic() + fault.length_s, leave)

    def _zombie(self, fault: Fault) -> None:
        victim = self._fleet.victim(fault.pick)
        if victim is None:
            return
        self._faults["zombie"] += 1
        pid, victim.paused = victim.pid, True
        victim.signal(signal.SIGSTOP)
        self._at(time.monotonic() + fault.length_s, lambda: self._wake(victim, pid))

    @staticmethod
    def _wake(victim: Worker, pid: int | None) -> None:
        if victim.pid == pid:
            victim.signal(signal.SIGCONT)
            victim.paused = False

    def _break_broker(self, fault: Fault) -> None:
        self._faults["broker"] += 1
        self._broker.kill()
        self._broker.start(timeout=180)

    def _restart(self, fault: Fault) -> None:
        victim = self._fleet.victim(fault.pick)
        if victim is not None:
            self._faults["restart"] += 1
            victim.signal(signal.SIGTERM)

    def _settings(self, fault: Fault) -> None:
        self._faults["settings"] += 1
        warning = 8 + int(fault.pick * 8)
        block = {"enabled": True, "warningThreshold": warning, "criticalThreshold": warning + 8}
        self._tell(self._topics.config, AGENTS[int(fault.pick * len(AGENTS))], block)

    def _order(self, fault: Fault) -> None:
        self._faults["command"] += 1
        action = "release" if fault.pick < 0.8 else "abort"
        order = {"action": action, "by": "soak", "reason": "as planned"}
        self._tell(self._topics.commands, self._load.some_run(), order)

    def _tell(self, topic: str, key: str, value: dict[str, Any]) -> None:
        self._operator.send(topic, key=key.encode(), value=json.dumps(value).encode())

    # -- the cluster -----------------------------------------------------------------------

    def _prepare(self, bootstrap: str) -> None:
        ensure_topics(
            Connection(bootstrap=(bootstrap,)), PREFIX, self._options.partitions, timeout_s=60
        )
        admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        changelog = ConfigResource(ConfigResourceType.TOPIC, self._topics.changelog, _CHANGELOG)
        admin.alter_configs([changelog])
        admin.close()
        producer = KafkaProducer(bootstrap_servers=bootstrap)
        producer.send(self._topics.config, key=b"*", value=b'{"enabled":true}').get(60)
        producer.close()

    def _ends(self) -> list[int]:
        tps = [TopicPartition(self._topics.events, n) for n in range(self._options.partitions)]
        ends = self._group.end_offsets(tps)
        return [ends[tp] for tp in tps]

    def _lag(self) -> int:
        """Records that nobody has committed yet; -1: the broker does not answer."""
        try:
            return sum(
                end - (self._group.committed(TopicPartition(self._topics.events, number)) or 0)
                for number, end in enumerate(self._ends())
            )
        except KafkaError:
            return -1

    def _sample(self, at_s: float) -> None:
        pids = [pid for worker in self._fleet.workers if (pid := worker.pid) is not None]
        self._samples.append(measure(at_s, self._load.sent["events"], self._lag(), pids))

    # -- the end ---------------------------------------------------------------------------

    def _note_exits(self, codes: list[int | None]) -> None:
        if set(codes) - set(ASKED_FOR):
            self._troubles.append(f"the last stop ended with exit codes {codes}")

    def _outcome(self, seconds: float) -> Outcome:
        oracle, sent = self._oracle, self._load.sent
        for who, failure in (("load", self._load.failure), ("oracle", oracle.failure)):
            if failure is not None:
                self._troubles.append(f"the {who} failed: {failure!r}")
        finding = oracle.judge()
        self._faults[POISON] = sent["poison"]
        return Outcome(
            command=self._command,
            begun=self._begun,
            seconds=seconds,
            faults=+self._faults,
            exits=self._fleet.exits,
            starts=self._fleet.starts,
            events=oracle.events,
            records=oracle.records,
            runs=self._load.born,
            verdicts=len(oracle.expected),
            replayed=oracle.verdicts.repeated,
            letters=len(oracle.expected_letters),
            notes=oracle.notes,
            finding=finding,
            samples=self._samples,
            troubles=self._troubles,
        )
