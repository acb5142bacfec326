"""What people say of verdicts, on the compacted topic ``<prefix>.labels``, by verdict id."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from loopstream.events import Verdict
from loopstream.events.base import Counter, Id, Millis, Model, Name
from loopstream.replay.kafka import TopicReader, connected
from loopstream.wire.connection import Connection

MAX_NOTE = 1024
_MAX_BYTES = 16 * 1024


class Label(Model):
    """One verdict, judged by a person: was it right to speak?"""

    v: Literal[1] = 1
    type: Literal["label"] = "label"
    verdict: Annotated[str, Field(min_length=32, max_length=32)]
    label: Literal["right", "wrong"]
    note: Annotated[str, Field(max_length=MAX_NOTE)] | None = None
    by: Id | None = None
    time: Millis
    scope: Id
    agent: Id | None = None
    detector: Id
    action: Id
    tool: Name | None = None
    count: Counter = 0
    event: Id
    """The event that decided."""
    partition: int = Field(ge=0)
    offset: int = Field(ge=0)


def labels_topic(prefix: str) -> str:
    """Name of the labels topic: one partition, compacted."""
    return f"{prefix}.labels"


def label_of(
    verdict: Verdict,
    label: Literal["right", "wrong"],
    now_ms: int,
    note: str | None,
    by: str | None,
) -> Label:
    """A label for a verdict."""
    return Label(
        verdict=verdict.id,
        label=label,
        note=note,
        by=by,
        time=now_ms,
        scope=verdict.scope,
        agent=verdict.agent,
        detector=verdict.detector,
        action=verdict.action.value,
        tool=verdict.tool,
        count=verdict.count,
        event=verdict.evidence.event,
        partition=verdict.evidence.partition,
        offset=verdict.evidence.offset,
    )


@dataclass(frozen=True, slots=True)
class LabelTopic:
    """The labels of a prefix."""

    connection: Connection
    topic: str
    timeout_s: float = 10.0

    def read(self) -> Iterator[Label]:
        """The labels in force: the newest of each verdict. Records that are none are left out.

        Raises:
            KafkaUnreachableError: no broker answers.
            TopicsError: the topic is missing: nothing was ever labelled.
        """
        newest: dict[bytes, bytes | None] = {}
        with connected(self.connection, self.timeout_s) as client:
            reader = TopicReader(client, self.topic, self.timeout_s)
            for number in reader.numbers():
                bounds = reader.bounds(number)
                for records in reader.batches(number, bounds.begin, bounds.end):
                    newest.update((record.key or b"", record.value) for record in records)
        for value in newest.values():
            if value is not None and len(value) <= _MAX_BYTES:
                try:
                    yield Label.model_validate_json(value)
                except ValidationError:
                    continue
