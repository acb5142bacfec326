"""What sources yield, and where in a log one may begin and end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from loopstream.events import Pin
from loopstream.replay.controls import ReplaySources


class Record(Protocol):
    """A record of an events partition; kafka-python's own fits."""

    @property
    def partition(self) -> int:
        """Number of the partition."""
        ...

    @property
    def offset(self) -> int:
        """Place in the partition."""
        ...

    @property
    def timestamp(self) -> int:
        """Append time in milliseconds."""
        ...

    @property
    def key(self) -> bytes | None:
        """Scope key of a record that holds one run's events only."""
        ...

    @property
    def value(self) -> bytes | None:
        """A frame or a single event."""
        ...

    @property
    def headers(self) -> Sequence[tuple[str, bytes]]:
        """Only ``content-type`` is looked at."""
        ...


class FileRecord(NamedTuple):
    """A record that a file holds."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]] = ()


@dataclass(frozen=True, slots=True)
class Bounds:
    """Offsets that a partition holds: ``begin`` is the first, ``end`` one past the last."""

    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Window:
    """What of a partition is folded and reported.

    Folding begins at ``begin`` (warm-up); reported is what happened from ``since`` on and before
    ``until``. All are offsets.
    """

    begin: int
    since: int
    until: int

    @property
    def empty(self) -> bool:
        """Whether nothing is to be reported."""
        return self.until <= max(self.since, self.begin)


class Log(Protocol):
    """An opened source."""

    name: str
    """What messages call it."""
    partitions: int
    """Number of partitions that runs are routed over."""
    verified: bool
    """Whether control records can be checked against the operators' topics."""

    def numbers(self) -> list[int]:
        """The partitions that it holds."""
        ...

    def bounds(self, number: int) -> Bounds:
        """First offset and end of a partition."""
        ...

    def offset_at(self, number: int, millis: int) -> int:
        """First offset appended at or after a time; the partition's end if there is none."""
        ...

    def batches(self, spans: Mapping[int, tuple[int, int]]) -> Iterator[Sequence[Record]]:
        """The records of partitions from an offset to before another; in order within each.

        Raises:
            KafkaUnreachableError: known records do not arrive.
            DataError: a file is corrupt.
        """
        ...

    def controls(self) -> ReplaySources:
        """The operators' topics, read to their end."""
        ...

    def pins(self) -> Mapping[int, Pin] | None:
        """Pins found while reading a file through; None: they are to be looked for."""
        ...


class Source(Protocol):
    """Where events come from; can be sent to another process."""

    def open(self) -> AbstractContextManager[Log]:
        """Connect or open; may be called in each process."""
        ...
