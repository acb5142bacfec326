"""A fold whose result depends on every event and its order: a hash chain per run.

It stands in for the real fold in fault tests: an event lost, doubled or out of order, or a
checkpoint torn, changes the chain, and with it verdict ids and rows for ever after.

Events are msgpack lists ``[[run, number], ...]``; every `EVERY`-th event of a run is a verdict.
Rows are ``[1, partition, last offset, count, chain]``.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgpack

from loopstream.events import Control, DeadLetter, Pin, RejectCode, Verdict
from loopstream.events.verdict import Action, Evidence, Level
from loopstream.partition import ControlSources
from loopstream.policy.deployment import Deployment
from loopstream.runtime.fold import RESERVED, Rows

EVERY = 10


def marker_key(partition: int) -> bytes:
    return RESERVED + b"marker" + str(partition).encode()


def row_position(row: bytes) -> tuple[int, int]:
    _, partition, last_offset, *_ = msgpack.unpackb(row)
    return partition, last_offset


class ChainFold:
    """See the module. ``padding`` makes verdicts that large, to have them refused."""

    padding = 0
    every = EVERY

    def __init__(
        self,
        deployment: Deployment,
        number: int,
        partitions: int,
        rows: Rows,
        sources: ControlSources,
        state: bytes | None,
    ) -> None:
        self.number = number
        self.verdicts: list[tuple[str, Verdict]] = []
        self.dead_letters: list[DeadLetter] = []
        self.counts: Counter[str] = Counter()
        self.last_offset: int | None = None
        self._rows = rows
        self._sources = sources
        self._live: dict[bytes, list[Any]] = {}
        self._dirty: set[bytes] = set()
        self._taken: list[tuple[str, Mapping[str, Any]]] = []
        # version, partition, last offset, pin in the log, last config offset applied, salt
        self._state: list[Any] = (
            msgpack.unpackb(state) if state is not None else [1, number, -1, False, None, ""]
        )

    @property
    def dirty(self) -> int:
        return len(self._dirty)

    @property
    def pinned(self) -> bool:
        return bool(self._state[3])

    def pin(self, now_ms: int) -> Pin:
        if self._state[4] is None:
            self._state[4] = self._sources.next_offset("config") - 1
        return Pin(
            v=1,
            type="pin",
            time=now_ms,
            config_offset=self._state[4],
            commands_offset=-1,
            settings={},
            policy="{}",
        )

    def apply(self, record: Any) -> bool:
        offset = record.offset
        try:
            body = msgpack.unpackb(record.value)
            if type(body) is dict:
                if not self._control(body["events"][0]):
                    return False
            else:
                self._events(body, offset)
        except Exception:  # noqa: BLE001  # whatever a stranger sent
            self._reject(record)
        self.last_offset = offset
        self._state[2] = max(self._state[2], offset)
        return True

    def _events(self, body: Any, offset: int) -> None:
        pairs = [(run.encode(), int(number)) for run, number in body]
        touched: set[bytes] = set()
        for run, number in pairs:
            state = self._live.get(run)
            if state is None:
                row = self._rows.get(run)
                packed = [1, self.number, -1, 0, ""] if row is None else msgpack.unpackb(row)
                state = self._live[run] = packed
            self._dirty.add(run)
            if offset <= state[2] and run not in touched:
                self.counts["replayed"] += 1
                continue
            touched.add(run)
            state[2] = offset
            state[3] += 1
            text = f"{state[4]}{number}{self._state[5]}"
            state[4] = hashlib.sha256(text.encode()).hexdigest()[:32]
            if not state[3] % self.every:
                self.verdicts.append((run.decode(), self._verdict(run.decode(), state, offset)))

    def _verdict(self, run: str, state: list[Any], offset: int) -> Verdict:
        return Verdict.model_construct(
            id=state[4],
            seq=state[3] // self.every,
            scope=run,
            action=Action.WARN,
            level=Level.WARNING,
            detector="chain",
            count=state[3],
            threshold=self.every,
            key=run,
            reason="x" * self.padding,
            evidence=Evidence.model_construct(event="", partition=self.number, offset=offset),
            profile="chain",
            settings="",
            event_time=0,
            append_time=0,
        )

    def _control(self, event: Mapping[str, Any]) -> bool:
        if event["type"] == "pin":
            self._state[3] = True
            return True
        offset = event["offset"]
        if self._state[4] is None or offset > self._state[4]:
            if offset >= self._sources.next_offset("config"):
                return False
            source = self._sources.lookup("config", offset)
            if source is None or hashlib.sha256(source.value or b"").digest() != event["sha256"]:
                raise ValueError("forged")
            self._state[4] = offset
            self._state[5] = event["sha256"].hex()[:8]
        return True

    def _reject(self, record: Any) -> None:
        self.dead_letters.append(
            DeadLetter(
                code=RejectCode.UNDECODABLE,
                topic="events",
                partition=self.number,
                offset=record.offset,
                index=-1,
                sha256=hashlib.sha256(record.value or b"").digest(),
                append_time=max(record.timestamp, 0),
            )
        )

    def take_rows(self) -> list[tuple[bytes, bytes]]:
        rows = [(run, msgpack.packb(self._live[run])) for run in self._dirty]
        self._taken = [(run.decode(), {"count": self._live[run][3]}) for run in self._dirty]
        self._dirty.clear()
        return [*rows, (marker_key(self.number), msgpack.packb(self._state))]

    def summaries(self) -> Sequence[tuple[str, Mapping[str, Any]]]:
        return self._taken

    @property
    def live(self) -> dict[bytes, list[Any]]:
        return self._live

    def shrink(self, size: int) -> None:
        for run in [run for run in self._live if run not in self._dirty][: -size or None]:
            del self._live[run]

    def expired(self, row: bytes) -> bool:
        return False

    def forget(self, scope: str) -> bool:
        return self._live.pop(scope.encode(), None) is None or True

    def pending_controls(self) -> list[Control]:
        applied = self._state[4] if self._state[4] is not None else -1
        return [
            Control(
                v=1,
                type="control",
                time=0,
                source="config",
                offset=offset,
                sha256=hashlib.sha256(source.value or b"").digest(),
                key=source.key,
                body=None if source.value is None else source.value.decode(),
            )
            for offset in range(applied + 1, self._sources.next_offset("config"))
            if (source := self._sources.lookup("config", offset)) is not None
        ]
