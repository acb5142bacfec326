"""What a deployment should have said: its whole events topic, folded in this process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from loopstream.events import ControlSource, DeadLetter, Pin, Verdict
from loopstream.partition import Partition
from loopstream.policy.deployment import Deployment
from loopstream.wire.codec import decode_record
from tests.e2e.house import PARTITIONS, Ear, House


@dataclass(frozen=True)
class Source:
    """A record of the config topic."""

    offset: int
    key: str
    value: bytes | None


class Sources:
    """The config topic; up to the pin at first, then all of it. There were no commands."""

    def __init__(self, records: list[Source], pinned: int) -> None:
        self._records = {record.offset: record for record in records}
        self.end = pinned + 1

    def lookup(self, source: ControlSource, offset: int) -> Source | None:
        return self._records.get(offset) if source == "config" else None

    def next_offset(self, source: ControlSource) -> int:
        return self.end if source == "config" else 0


def wanted(house: House) -> tuple[dict[str, Verdict], list[DeadLetter]]:
    """Verdicts by id, and dead letters, that follow from the events as they stand."""
    config = _config(house)
    verdicts: dict[str, Verdict] = {}
    letters: list[DeadLetter] = []
    for number in range(PARTITIONS):
        records = [record for record in house.events() if record.partition == number]
        sources = Sources(config, _pinned(records))
        fold = Partition(Deployment(prefix=house.prefix), number, PARTITIONS, {}, sources)
        sources.end = 2**63
        for record in records:
            assert fold.apply(record)
        said = [verdict for _, verdict in fold.verdicts]
        assert len({verdict.id for verdict in said}) == len(said), "two decisions with one id"
        verdicts |= {verdict.id: verdict for verdict in said}
        letters += fold.dead_letters
    return verdicts, letters


def assert_exact(house: House) -> None:
    """Nothing was lost, nothing made up, and what was said twice was the same both times."""
    house.settle()
    expected, letters = wanted(house)
    seen: dict[str, Verdict] = {}
    for verdict in house.all_verdicts():
        assert seen.setdefault(verdict.id, verdict) == verdict, "one id, two decisions"
    told = "\n".join(map(str, house.workers))
    assert expected.keys() - seen.keys() == set(), f"lost; {told}"
    assert seen.keys() - expected.keys() == set(), f"made up; {told}"
    assert seen == expected
    positions = {(letter.partition, letter.offset, letter.index) for letter in letters}
    assert {
        (letter.partition, letter.offset, letter.index) for letter in house.dead_letters()
    } == positions


def _config(house: House) -> list[Source]:
    ear = Ear(house.bootstrap, house.topics.config, 1)
    try:
        ear.catch_up()
        return [Source(r.offset, r.key.decode(), r.value) for r in ear.records]
    finally:
        ear.close()


def _pinned(records: list[Any]) -> int:
    """Last config offset that was in force before the partition's first event."""
    for record in records:
        for event in decode_record(record.value).events:
            if isinstance(event, Pin):
                return event.config_offset
    raise AssertionError("no pin in the events")
