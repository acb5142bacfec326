"""Feeds hostile records to the fold and keeps account."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from dataclasses import dataclass, field

from loopstream.partition.fold import Partition
from loopstream.wire.codec import decode_record
from tests.fuzz.damage import records
from tests.partition.driver import Feed, Record

MAX_GROWTH = 64 * 2**20
_NOTES = ("applied", "duplicate", "rejected", "pin", "foreign_pin", "control", "replayed")
_CHECK_EVERY = 500
_SAMPLE = 1_000


@dataclass(slots=True)
class Outcome:
    """What came of it; ``peak`` is the largest growth of memory in decoding one record."""

    records: int = 0
    events: int = 0
    letters: int = 0
    unaccounted: list[int] = field(default_factory=list)
    codes: Counter[str] = field(default_factory=Counter)
    peak: int = 0

    @property
    def clean(self) -> bool:
        """Everything is accounted for, in bounded memory."""
        return not self.unaccounted and self.peak < MAX_GROWTH and bool(self.events)

    def closing_line(self) -> str:
        codes = " ".join(f"{code}={count}" for code, count in sorted(self.codes.items()))
        return (
            f"records={self.records} events={self.events} dead_letters={self.letters} ({codes}) "
            f"unaccounted={len(self.unaccounted)} peak_mib={self.peak / 2**20:.1f}"
        )


def fuzz(count: int, seed: int) -> Outcome:
    """Feed ``count`` records; an exception of the fold is not caught."""
    feed, outcome = Feed(settings={"enabled": True}), Outcome()
    partition = feed.partition
    for offset, value in zip(range(count), records(seed), strict=False):
        _one(partition, offset, value, outcome)
        if not offset % _CHECK_EVERY:
            feed.checkpoint()
            partition.shrink(1_000)
            partition.dead_letters.clear()
            partition.verdicts.clear()
    return outcome


def _one(partition: Partition, offset: int, value: bytes, outcome: Outcome) -> None:
    watched = len(value) > _SAMPLE
    if watched:
        tracemalloc.start()
    decoded = decode_record(value)
    if watched:
        outcome.peak = max(outcome.peak, tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    told, letters = _told(partition), len(partition.dead_letters)
    applied = partition.apply(Record(offset, value))
    new = partition.dead_letters[letters:]
    outcome.records += 1
    outcome.events += len(decoded.events)
    outcome.letters += len(new)
    outcome.codes.update(letter.code.value for letter in new)
    things = len(decoded.events) + len(decoded.rejects)
    strangers = any(letter.offset != offset for letter in new)
    if not applied or not things or _told(partition) - told != things or strangers:
        outcome.unaccounted.append(offset)


def _told(partition: Partition) -> int:
    return sum(partition.counts[note] for note in _NOTES)
