"""The load of a soak: runs that work, loop, wait and end, told in frames and single events."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from kafka import KafkaProducer
from kafka.errors import KafkaError

from loopstream.fingerprint.calls import fingerprint_call
from loopstream.fingerprint.digests import call_digests, outcome_digests
from loopstream.fingerprint.outcomes import fingerprint_outcome
from loopstream.wire.codec import pack_frame
from loopstream.wire.routing import partition_of

Fields = dict[str, Any]

AGENTS: Final = ("coder", "researcher", "clerk", "tester")
_TICK_S: Final = 0.05
_FRAME: Final = 16
_SINGLE: Final = 0.1
_TWICE: Final = 0.005
_POISON: Final = 0.006
_RAW: Final = 0.1
_ARGS: Final = 400


class Run:
    """One run: phases of looping and of work, up to its end."""

    def __init__(self, name: str, chance: random.Random) -> None:
        self.name = name
        self._chance = chance
        self._raw = chance.random() < _RAW
        self._seq = 0
        self._common = {"v": 1, "run": name, "agent": chance.choice(AGENTS), "epoch": 1}
        self._script = self._play()

    def next(self) -> Fields | None:
        """Its next event; None once it has ended."""
        return next(self._script, None)

    def _play(self) -> Iterator[Fields]:
        chance = self._chance
        yield self._event("run_started")
        for _ in range(chance.randint(1, 3)):
            turns = chance.randint(5, 40)
            kind = chance.choices(("work", "loop", "ping", "poll", "lost"), (50, 22, 10, 10, 8))[0]
            if chance.random() < 0.1:
                yield self._event("compaction", retried=True)
            for turn in range(turns):
                yield from self._turn(kind, turn)
        yield self._event("run_ended")

    def _turn(self, kind: str, turn: int) -> Iterator[Fields]:
        if kind == "work":
            yield from self._call("read", self._chance.randrange(_ARGS), turn)
        elif kind == "loop":
            yield from self._call("exec", 1, 0)
        elif kind == "ping":
            yield from self._call("read" if turn % 2 else "list", 7, 0)
        elif kind == "poll":
            yield from self._call("command_status", 3, 0)
        else:
            yield from self._call("teleport", turn % 3, -1)

    def _call(self, tool: str, args: int, result: int) -> Iterator[Fields]:
        number = self._seq
        named = {"tool": tool, "call_id": f"c{number}"}
        if self._raw:
            text, said = json.dumps(_args(args)), _said(tool, result)
            yield self._event("tool_call", **named, args=text)
            yield self._event("tool_outcome", **named, args=text, **_raw(said))
            return
        yield self._event("tool_call", **named, fp=_call_fp(tool, args))
        yield self._event("tool_outcome", **named, fp=_outcome_fp(tool, args, result))

    def _event(self, kind: str, **fields: Any) -> Fields:
        self._seq += 1
        # A runner's clock may be a day off either way; nothing may depend on it.
        now = int(time.time() * 1000) + self._chance.choice((0, 0, 0, -86_400_000, 86_400_000))
        made = {"type": kind, "id": f"e{self._seq}", "seq": self._seq, "time": now}
        return self._common | made | fields


def _args(number: int) -> Fields:
    return {"path": f"src/{number}.py", "deep": {"n": number}}


def _said(tool: str, number: int) -> tuple[str, Any]:
    if number < 0:
        return "error", f"Unknown tool: {tool}"
    return "result", {"content": [{"type": "text", "text": f"text {number}"}]}


def _raw(said: tuple[str, Any]) -> Fields:
    kind, value = said
    return {kind: json.dumps(value)}


@lru_cache(maxsize=20_000)
def _call_fp(tool: str, args: int) -> Fields:
    digests = call_digests(fingerprint_call(tool, _args(args)))
    return {"v": 1, "documented": digests.model_dump(exclude_defaults=True)}


@lru_cache(maxsize=50_000)
def _outcome_fp(tool: str, args: int, result: int) -> Fields:
    kind, value = _said(tool, result)
    seen = fingerprint_outcome(tool, _args(args), profile="documented", **{kind: value})
    return {"v": 1, "documented": outcome_digests(seen).model_dump(exclude_none=True)}


class Load(threading.Thread):
    """Writes events at a pace until it is stopped; ``sent`` counts events and poison records."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        partitions: int,
        *,
        seed: int,
        per_second: int,
        runs: int,
        poison: float,
    ) -> None:
        super().__init__(name="load", daemon=True)
        self.sent: Counter[str] = Counter()
        self.failure: BaseException | None = None
        self._halt = threading.Event()
        self._chance = random.Random(seed)
        self._servers = bootstrap
        self._topic = topic
        self._partitions = partitions
        self._per_second = per_second
        self._poison = poison * _POISON
        self.born = 0
        self._seed = seed
        self.runs: list[list[Run]] = [[] for _ in range(partitions)]
        for _ in range(runs):
            self._bear()

    def end(self) -> None:
        """Write no more, and wait until all is written."""
        self._halt.set()
        self.join()

    def some_run(self) -> str:
        """A run that is alive, more or less."""
        return self._chance.choice(self._chance.choice(self.runs)).name

    def run(self) -> None:
        producer = KafkaProducer(
            bootstrap_servers=self._servers, linger_ms=10, max_block_ms=300_000
        )
        try:
            self._work(producer)
            producer.flush(300)
        except BaseException as error:  # noqa: BLE001  # told by the soak
            self.failure = error
        finally:
            producer.close()

    def _work(self, producer: KafkaProducer) -> None:
        due = time.monotonic()
        while not self._halt.is_set():
            quota = self._per_second * _TICK_S
            while quota > 0:
                quota -= self._record(producer)
            due += _TICK_S
            late = time.monotonic() - due
            if late > 5:  # the broker was gone: go on at the pace, don't catch up in a burst
                due = time.monotonic()
            self._halt.wait(max(0.0, -late))

    def _record(self, producer: KafkaProducer) -> int:
        """Write one record; the number of events in it."""
        partition = self._chance.randrange(self._partitions)
        if self._chance.random() < self._poison:
            self._send(producer, self._bad(partition), partition)
            self.sent["poison"] += 1
            return 1
        single = self._chance.random() < _SINGLE
        events = self._events(partition, 1 if single else self._chance.randint(2, _FRAME))
        value = json.dumps(_hex(events[0])).encode() if single else pack_frame(events)
        self._send(producer, value, partition)
        if self._chance.random() < _TWICE:  # as after a lost answer of the broker
            self._send(producer, value, partition)
            self.sent["twice"] += 1
        self.sent["events"] += len(events)
        return len(events)

    def _send(self, producer: KafkaProducer, value: bytes | None, partition: int) -> None:
        try:
            key = b"a tombstone" if value is None else None
            sent = producer.send(self._topic, key=key, value=value, partition=partition)
        except KafkaError:
            self.sent["failed"] += 1
            return
        sent.add_errback(lambda _error: self.sent.update(failed=1))

    def _events(self, partition: int, count: int) -> list[Fields]:
        events: list[Fields] = []
        while len(events) < count:
            runs = self.runs[partition]
            at = self._chance.randrange(len(runs))
            event = runs[at].next()
            if event is None:
                runs[at] = self._bear(partition)
                continue
            events.append(event)
        return events

    def _bear(self, partition: int | None = None) -> Run:
        """A new run; with ``partition`` one of it, else it is added where it belongs."""
        while True:
            self.born += 1
            name = f"run-{self._seed}-{self.born}"
            its = partition_of(name, self._partitions)
            if partition is None:
                run = Run(name, random.Random(self._chance.random()))
                self.runs[its].append(run)
                return run
            if its == partition:
                return Run(name, random.Random(self._chance.random()))

    def _bad(self, partition: int) -> bytes | None:
        """A record that must cost nobody anything."""
        chance = self._chance
        event = {"v": 1, "type": "run_started", "run": f"bad-{chance.random()}", "time": 1}
        kind = chance.randrange(8)
        if kind == 0:
            return chance.randbytes(chance.randint(1, 400))
        if kind == 1:
            return None
        if kind == 2:
            return pack_frame(self._events(partition, 2))[:-9]  # torn; those events are lost
        if kind == 3:
            return b'{"v":1,' + chance.randbytes(20)
        if kind == 4:
            return b"\x91" * 5000 + b"\x01"
        if kind == 5:
            return pack_frame([event | {"type": "nonsense"}])
        if kind == 6:
            return pack_frame([{"v": 99}, *self._events(partition, 2), event | {"time": -1}])
        elsewhere = next(
            name
            for name in (f"stray-{chance.random()}" for _ in range(1000))
            if partition_of(name, self._partitions) != partition
        )
        return pack_frame([event | {"run": elsewhere}, *self._events(partition, 1)])


def _hex(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {name: _hex(part) for name, part in value.items()}
    return value
