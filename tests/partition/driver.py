"""Records, operators' topics and a row store for the pure fold: no Kafka, no clock."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgpack

from loopstream.events import Control, ControlSource
from loopstream.partition import Partition, marker_key
from loopstream.partition.admission import TenantKey
from loopstream.policy.deployment import Deployment
from loopstream.wire.signing import Verifier

START = 1_700_000_000_000
DIGEST = hashlib.sha256(b"args").digest()
RESULT = hashlib.sha256(b"result").digest()
Fields = dict[str, Any]


@dataclass(frozen=True)
class Record:
    """As aiokafka and kafka-python have it."""

    offset: int
    value: bytes | None
    timestamp: int = START
    headers: Sequence[tuple[str, bytes]] = ()
    key: bytes | None = None


@dataclass(frozen=True)
class SourceRecord:
    offset: int
    key: str
    value: bytes | None


@dataclass
class Sources:
    """Operators' topics; ``read`` tells how far they have been read (None: to the end)."""

    topics: dict[ControlSource, list[SourceRecord]] = field(
        default_factory=lambda: {"config": [], "commands": []}
    )
    read: int | None = None
    all_read: bool = False

    def push(
        self, source: ControlSource, key: str, body: object, *, text: str | None = None
    ) -> None:
        topic = self.topics[source]
        value = None if body is None and text is None else (text or json.dumps(body)).encode()
        topic.append(SourceRecord(len(topic), key, value))

    def lookup(self, source: ControlSource, offset: int) -> SourceRecord | None:
        topic = self.topics[source]
        return topic[offset] if offset < min(len(topic), self.next_offset(source)) else None

    def next_offset(self, source: ControlSource) -> int:
        if self.all_read:
            return 2**63
        end = len(self.topics[source])
        return end if self.read is None else min(end, self.read)

    @contextmanager
    def certain(self) -> Any:
        """As the worker does once it has read to the end: what is not there never was."""
        self.all_read = True
        yield
        self.all_read = False


def control_of(record: SourceRecord, source: ControlSource, **changes: Any) -> Fields:
    """The copy of a source record that the partition's owner appends."""
    value = record.value
    fields = {
        "v": 1,
        "type": "control",
        "id": f"{source}-{record.offset}",
        "time": 0,
        "source": source,
        "offset": record.offset,
        "sha256": hashlib.sha256(value or b"").digest(),
        "key": record.key,
    }
    if value is not None:
        fields["body"] = value.decode()
    return fields | changes


def fields_of(control: Control) -> Fields:
    return control.model_dump(exclude_none=True)


def call(run: str | None = "r1", *, args: Any = DIGEST, **more: Any) -> Fields:
    fp = {"v": 1, "documented": {"args": args}}
    made = {"v": 1, "type": "tool_call", "run": run, "time": 1, "tool": "read", "fp": fp} | more
    return {name: value for name, value in made.items() if value is not None}


def outcome(run: str | None = "r1", *, result: bytes | None = RESULT, **more: Any) -> Fields:
    fp = {"v": 1, "documented": {"args": DIGEST, "result": result}}
    made = {"v": 1, "type": "tool_outcome", "run": run, "time": 1, "tool": "read", "fp": fp} | more
    return {name: value for name, value in made.items() if value is not None}


def raw_call(args: str = "{}", run: str = "r1", **more: Any) -> Fields:
    return call(run, fp=None) | {"args": args} | more


def raw_outcome(run: str = "r1", **more: Any) -> Fields:
    return outcome(run, fp=None) | {"args": "{}"} | more


def started(run: str | None = "r1", **more: Any) -> Fields:
    made = {"v": 1, "type": "run_started", "run": run, "time": 1} | more
    return {name: value for name, value in made.items() if value is not None}


def ended(run: str = "r1", **more: Any) -> Fields:
    return {"v": 1, "type": "run_ended", "run": run, "time": 1} | more


def frame(events: Iterable[Fields]) -> bytes:
    return bytes(msgpack.packb({"v": 1, "events": list(events)}))


def single(event: Fields) -> bytes:
    return bytes(msgpack.packb(event))


def as_json(event: Fields) -> bytes:
    return json.dumps(event, default=lambda value: value.hex()).encode()


class Feed:
    """One partition fed record by record, with its rows as the worker would keep them."""

    def __init__(
        self,
        *,
        deployment: Deployment | None = None,
        sources: Sources | None = None,
        partitions: int = 1,
        number: int = 0,
        key: TenantKey | None = None,
        samples: bool = False,
        settings: object = None,
        verifier: Verifier | None = None,
    ) -> None:
        self.deployment = deployment or Deployment("test")
        self.sources = sources or Sources()
        if settings is not None:
            self.sources.push("config", "*", settings)
        self.rows: dict[bytes, bytes] = {}
        self.offset = -1
        self._partitions, self._number, self._key, self._samples = partitions, number, key, samples
        self._verifier = verifier
        self.partition = self._open()
        self.checkpoint()

    def _open(self) -> Partition:
        return Partition(
            self.deployment,
            self._number,
            self._partitions,
            self.rows,
            self.sources,
            state=self.rows.get(marker_key(self._number)),
            key=self._key,
            samples=self._samples,
            verifier=self._verifier,
        )

    def feed(self, *values: bytes | Fields | None, at: int = START, **more: Any) -> Feed:
        """Append and apply records, given as bytes or as the fields of one event."""
        for value in values:
            self.offset += 1
            data = frame([value]) if isinstance(value, dict) else value
            assert self.partition.apply(Record(self.offset, data, at, **more))
        return self

    def checkpoint(self) -> None:
        self.rows.update(self.partition.take_rows())

    def restart(self) -> None:
        """As after kill -9: what was not written is lost."""
        self.partition = self._open()

    @property
    def codes(self) -> list[str]:
        return [letter.code.value for letter in self.partition.dead_letters]

    @property
    def counts(self) -> dict[str, int]:
        return dict(self.partition.counts)

    def history(self, scope: str = "r1") -> int:
        state = self.partition.live.get(scope)
        return 0 if state is None else len(state.history)

    def said(self) -> list[tuple[str, str, int]]:
        return [(v.action.value, v.detector, v.count) for _, v in self.partition.verdicts]
