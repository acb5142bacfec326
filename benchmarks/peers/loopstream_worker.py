"""Our worker: the streak work plugged into the runtime, or the product as it is."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections import Counter
from typing import Any

import faust
import msgpack
from faust.types import TP
from kafka import KafkaConsumer, TopicPartition

from benchmarks.peers.report import Meter, arguments
from benchmarks.work import streak_decode, streak_new, streak_step
from loopstream.events import Action, Evidence
from loopstream.partition import marker_key, row_position
from loopstream.policy.deployment import Deployment
from loopstream.runtime.app import create_app
from loopstream.runtime.loop import collect_rarely, new_event_loop
from loopstream.runtime.product import partition_factory
from loopstream.runtime.settings import WorkerSettings
from loopstream.wire.connection import Connection


class StreakVerdict:
    """What the runtime asks of a verdict, around ten bytes of text."""

    action = Action.WARN
    detector = id = "streak"
    mode = "enforce"
    run = agent = runner = traceparent = None
    count = append_time = 0
    evidence = Evidence(event="", partition=0, offset=0)

    def __init__(self, text: bytes) -> None:
        self.text = text

    def model_dump(self, **_: Any) -> dict[str, Any]:
        return {"streak": self.text}


class StreakLane:
    """The streak work as a fold of one partition: packed rows, live states, marker row last."""

    def __init__(self, number: int, rows: Any, state: bytes | None) -> None:
        self.number = number
        self.verdicts: list[tuple[str, Any]] = []
        self.dead_letters: list[Any] = []
        self.counts: Counter[str] = Counter()
        self.pinned = True
        self.last_offset: int | None = None
        self._rows = rows
        self.live: dict[str, list[Any]] = {}
        self._dirty: dict[str, None] = {}

    @property
    def dirty(self) -> int:
        return len(self._dirty)

    def apply(self, record: Any) -> bool:
        offset = record.offset
        live, dirty = self.live, self._dirty
        events = streak_decode(record.value)
        for run, call in events:
            state = live.get(run)
            if state is None:
                row = self._rows.get(run.encode())
                state = live[run] = msgpack.unpackb(row)[5:] if row else [*streak_new(), -1]
            if state[2] >= offset and len(events) == 1:
                continue
            if streak := streak_step(state, call):
                self.verdicts.append((run, StreakVerdict(b"%d" % streak)))
            state[2] = offset
            dirty[run] = None
        self.counts["applied"] += len(events)
        self.last_offset = offset
        return True

    def take_rows(self) -> list[tuple[bytes, bytes]]:
        rows = []
        for run in self._dirty:
            state = self.live[run]
            head = [1, self.number, state[2], 1, None]
            rows.append((run.encode(), msgpack.packb([*head, *state])))
        marker = [1, self.number, self.last_offset or 0, 1, None]
        rows.append((marker_key(self.number), msgpack.packb(marker)))
        self._dirty.clear()
        return rows

    def summaries(self) -> list[Any]:
        return []

    def shrink(self, size: int) -> None:
        return None

    def expired(self, row: bytes) -> bool:
        return False

    def forget(self, scope: str) -> bool:
        return False

    def pending_controls(self) -> list[Any]:
        return []

    def pin(self, now_ms: int) -> Any:
        raise AssertionError


def main() -> None:
    """Run a worker until everything is committed."""
    given = arguments()
    meter = Meter(given.events)
    prefix = given.topic.removesuffix(".events")
    settings = WorkerSettings(
        connection=Connection(bootstrap=(given.bootstrap,)),
        deployment=Deployment(prefix),
        partitions=given.partitions,
    )
    product = partition_factory(settings)

    def make(
        deployment: Any, number: int, partitions: int, rows: Any, sources: Any, state: Any
    ) -> Any:
        if given.work == "streak":
            return Metered(StreakLane(number, rows, state), meter)
        return Metered(product(deployment, number, partitions, rows, sources, state), meter)

    ends = end_offsets(given)
    loop = new_event_loop()
    asyncio.set_event_loop(loop)
    app = create_app(settings, given.partitions, make, marker_key, row_position)
    threading.Thread(target=watch, args=(app, loop, given, meter, ends), daemon=True).start()
    collect_rarely()
    worker = faust.Worker(app, loop=loop, loglevel="WARNING", quiet=True, redirect_stdouts=False)
    worker.spinner = None  # it draws on stdout
    with contextlib.suppress(SystemExit):
        worker.execute_from_commandline()


class Metered:
    """A fold with its events counted; nothing else of it changes.

    From outside: a compiled fold has no place for another ``apply``.
    """

    def __init__(self, fold: Any, meter: Meter) -> None:
        self.__dict__.update(_fold=fold, _meter=meter)

    def apply(self, record: Any) -> bool:
        counts, meter = self._fold.counts, self._meter
        before = counts["applied"]
        meter.start()
        applied = self._fold.apply(record)
        meter.seen += counts["applied"] - before
        return bool(applied)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fold, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._fold, name, value)


def end_offsets(given: Any) -> dict[int, int]:
    """Where each partition ends before the worker adds its own pin."""
    consumer = KafkaConsumer(bootstrap_servers=given.bootstrap)
    tps = [TopicPartition(given.topic, number) for number in range(given.partitions)]
    ends = consumer.end_offsets(tps)
    consumer.close()
    return {tp.partition: end for tp, end in ends.items()}


def watch(app: Any, loop: Any, given: Any, meter: Meter, ends: dict[int, int]) -> None:
    """Stop the clock when everything is committed, then the process."""
    while meter.seen < given.events:
        time.sleep(0.002)
    asyncio.run_coroutine_threadsafe(_commit(app), loop).result()
    consumer = app._consumer  # noqa: SLF001 - looking on, from outside
    while any(
        (consumer.committed_offset(TP(given.topic, n)) or 0) < end for n, end in ends.items()
    ):
        time.sleep(0.002)
    meter.stop()
    stats = app.core.stats
    meter.verdicts = stats.verdicts
    meter.report(checkpoints=stats.checkpoints, rows=stats.rows)
    os._exit(0)


async def _commit(app: Any) -> None:
    """What a stop does first: no peer waits for its interval when all is done."""
    await app.core.checkpointer.take()
    await app.consumer.commit()


if __name__ == "__main__":
    main()
