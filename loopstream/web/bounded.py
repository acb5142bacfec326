"""A source that stops giving when the time is up or nobody waits any more."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from loopstream.errors import LoopstreamError
from loopstream.events import Pin
from loopstream.replay.controls import ReplaySources
from loopstream.replay.records import Bounds, Log, Record, Source


class TooMuchError(LoopstreamError):
    """A replay would take longer than a page may."""

    code = "too_much"

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"the log is too long to be replayed for a page ({seconds:g} s).",
            hint="Take `loopstream explain RUN` or `loopstream report RUN`.",
        )


@dataclass(frozen=True, slots=True)
class BoundedSource:
    """A source for a page.

    Attributes:
        seconds: how long reading may take.
        gone: set when nobody waits for the outcome any more.
    """

    source: Source
    seconds: float
    gone: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def open(self) -> Iterator[Log]:
        """Connect; the time begins."""
        with self.source.open() as log:
            yield _BoundedLog(log, self, time.monotonic() + self.seconds)


class _BoundedLog:
    def __init__(self, log: Log, source: BoundedSource, deadline: float) -> None:
        self.name = log.name
        self.partitions = log.partitions
        self.verified = log.verified
        self._log = log
        self._source = source
        self._deadline = deadline

    def numbers(self) -> list[int]:
        return self._log.numbers()

    def bounds(self, number: int) -> Bounds:
        return self._log.bounds(number)

    def offset_at(self, number: int, millis: int) -> int:
        return self._log.offset_at(number, millis)

    def controls(self) -> ReplaySources:
        return self._log.controls()

    def pins(self) -> Mapping[int, Pin] | None:
        return self._log.pins()

    def batches(self, spans: Mapping[int, tuple[int, int]]) -> Iterator[Sequence[Record]]:
        for records in self._log.batches(spans):
            yield records
            if self._source.gone.is_set() or time.monotonic() > self._deadline:
                raise TooMuchError(self._source.seconds)
