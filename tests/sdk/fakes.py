"""Kafka for tests that need none: topics in memory, which can be taken down and brought back."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from loopstream.events import (
    Action,
    Control,
    Evidence,
    Level,
    Pin,
    RunEvent,
    Target,
    Verdict,
)
from loopstream.sdk.face import RunnerFace
from loopstream.sdk.frames import Frame
from loopstream.sdk.hub import Hub
from loopstream.sdk.machine import Machine
from loopstream.sdk.options import Options
from loopstream.sdk.ports import Done, Record, Refused
from loopstream.wire.codec import decode_record
from loopstream.wire.connection import Connection
from loopstream.wire.routing import partition_of
from loopstream.wire.verdicts import encode_model

PARTITIONS = 4
SIGNATURE = "exec:" + "ab" * 32


class Bus:
    """The events and verdicts of one deployment.

    ``up`` is whether it can be reached, ``max_frame`` the largest frame that it takes, ``answer``
    what it does with each frame (the worker's part), ``lossy`` how many frames it takes in without
    confirming them.
    """

    def __init__(self, partitions: int = PARTITIONS) -> None:
        self.partitions = partitions
        self.up = True
        self.lossy = 0
        self.max_frame = 1 << 30
        self.answer: Callable[[Frame], object] = opened
        self.frames: list[Frame] = []
        self.verdicts: dict[int, list[Record]] = {p: [] for p in range(partitions)}
        self.assigned: list[dict[int, int]] = []
        self.connected: Counter[str] = Counter()
        self.changed = threading.Condition()

    @property
    def events(self) -> list[RunEvent]:
        """All events that arrived, in their order."""
        return [event for frame in self.frames for event in opened(frame)]

    def publish(self, *verdicts: Verdict) -> None:
        for verdict in verdicts:
            self.publish_bytes(verdict.scope, encode_model(verdict))

    def publish_bytes(self, scope: str, value: bytes | None) -> None:
        with self.changed:
            partition = partition_of(scope, self.partitions)
            log = self.verdicts[partition]
            log.append(Record(partition, len(log), scope.encode(), value))
            self.changed.notify_all()

    def require(self) -> None:
        if not self.up:
            raise ConnectionError("the bus is down")


class FakeOut:
    def __init__(self, bus: Bus) -> None:
        bus.require()
        bus.connected["out"] += 1
        self.bus = bus
        self.partitions = bus.partitions

    def send(self, frame: Frame, done: Done) -> None:
        bus = self.bus
        if not bus.up:
            done(ConnectionError("the bus is down"))
        elif len(frame.value) > bus.max_frame:
            done(Refused("too large"))
        else:
            bus.frames.append(frame)
            bus.answer(frame)
            if bus.lossy:
                bus.lossy -= 1
                done(TimeoutError("no acknowledgement"))
            else:
                done(None)

    def close(self, timeout: float) -> None:
        self.bus.connected["out"] -= 1


class FakeIn:
    def __init__(self, bus: Bus) -> None:
        bus.require()
        bus.connected["in"] += 1
        self.bus = bus
        self.positions: dict[int, int] = {}

    def ends(self, partitions: Iterable[int]) -> Mapping[int, int]:
        self.bus.require()
        return {p: len(self.bus.verdicts[p]) for p in partitions}

    def assign(self, positions: Mapping[int, int]) -> None:
        self.positions = {p: self.positions.get(p, at) for p, at in positions.items()}
        self.bus.assigned.append(dict(self.positions))

    def poll(self, timeout: float) -> Sequence[Record]:
        with self.bus.changed:
            if not self._news():
                self.bus.changed.wait(timeout)
            self.bus.require()
            news = self._news()
        for record in news:
            self.positions[record.partition] = record.offset + 1
        return news

    def _news(self) -> list[Record]:
        return [r for p, at in self.positions.items() for r in self.bus.verdicts[p][at:]]

    def close(self) -> None:
        self.bus.connected["in"] -= 1


def machine_on(bus: Bus, options: Options) -> Machine:
    return Machine(options, lambda: FakeOut(bus), lambda: FakeIn(bus))


def on(bus: Bus, face: type[RunnerFace]) -> type[Any]:
    """A runner class whose Kafka is ``bus``."""

    class OnBus(face):  # type: ignore[valid-type, misc]
        def _start(self, connection: Connection, options: Options) -> Machine:
            return machine_on(bus, options)

    return OnBus


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now

    def ms(self) -> int:
        return int(self.now * 1000)


class Bench:
    """A hub without threads, its frames taken and its verdicts delivered by hand."""

    def __init__(self, **options: Any) -> None:
        self.clock = Clock()
        given = {"agent": "a", "runner": "r", "linger_ms": 0, **options}
        self.hub = Hub(Options(**given), self.clock, self.clock.ms)
        self.hub.outbox.route(PARTITIONS)

    def begin(self, run: str | None = "run-1", **more: Any) -> Any:
        given = {
            "session": None,
            "resumed": False,
            "trace": None,
            "parent_run": None,
            "root_run": None,
            "traceparent": None,
            **more,
        }
        return self.hub.begin(run, **given)

    def sent(self) -> list[RunEvent]:
        """Send all that waits; the events in it."""
        self.hub.outbox.open(range(PARTITIONS))
        events = []
        while frames := self.hub.outbox.take():
            for frame in frames:
                events += opened(frame)
                self.hub.outbox.done(frame)
        return events

    def hear(self, *verdicts: Verdict) -> None:
        for verdict in verdicts:
            partition = partition_of(verdict.scope, PARTITIONS)
            self.hub.deliver(Record(partition, 0, verdict.scope.encode(), encode_model(verdict)))


def opened(frame: Frame) -> list[RunEvent]:
    decoded = decode_record(frame.value)
    assert not decoded.rejects
    return [event for event in decoded.events if not isinstance(event, Control | Pin)]


_ids = iter(range(1, 1 << 60))


def verdict(action: Action, scope: str = "run-1", **more: Any) -> Verdict:
    """A verdict as a worker would publish it, each with an id of its own."""
    given = {
        "id": f"{next(_ids):032x}",
        "seq": 1,
        "scope": scope,
        "run": scope,
        "action": action,
        "level": Level.WARNING if action is Action.WARN else Level.CRITICAL,
        "detector": "generic_repeat",
        "count": 20,
        "threshold": 20,
        "tool": "exec",
        "key": "generic:exec",
        "reason": f"{action} it",
        "evidence": Evidence(event="nobody's", partition=0, offset=0),
        "profile": "documented",
        "settings": "s",
        "event_time": 1,
        "append_time": 1,
        **more,
    }
    return Verdict(**given)


def about(event: str) -> Evidence:
    return Evidence(event=event, partition=0, offset=0)


def on_signature(signature: str) -> tuple[Target, ...]:
    return (Target(signature=signature),)


def eventually(holds: Callable[[], object], timeout: float = 30.0) -> None:
    """Wait until something holds that other threads bring about."""
    deadline = time.monotonic() + timeout
    while not holds():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.005)
