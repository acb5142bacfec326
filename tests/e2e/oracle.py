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
    """A record of the config or the command topic."""

    offset: int
    key: str
    value: bytes | None


class Sources:
    """The operators' topics; up to the pin at first, then all of them."""

    def __init__(self, records: dict[ControlSource, list[Source]], pin: Pin) -> None:
        self._records = {
            (source, record.offset): record for source, held in records.items() for record in held
        }
        self.ends = {"config": pin.config_offset + 1, "commands": pin.commands_offset + 1}

    def lookup(self, source: ControlSource, offset: int) -> Source | None:
        return self._records.get((source, offset))

    def next_offset(self, source: ControlSource) -> int:
        return self.ends[source]


def wanted(house: House) -> tuple[dict[str, Verdict], list[DeadLetter]]:
    """Verdicts by id, and dead letters, that follow from the events as they stand."""
    topics = house.topics
    held: dict[ControlSource, list[Source]] = {
        "config": _read(house, topics.config),
        "commands": _read(house, topics.commands),
    }
    verdicts: dict[str, Verdict] = {}
    letters: list[DeadLetter] = []
    for number in range(PARTITIONS):
        records = [record for record in house.events() if record.partition == number]
        sources = Sources(held, _pin(records))
        fold = Partition(Deployment(prefix=house.prefix), number, PARTITIONS, {}, sources)
        sources.ends = {"config": 2**63, "commands": 2**63}
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


def _read(house: House, topic: str) -> list[Source]:
    ear = Ear(house.bootstrap, topic, 1)
    try:
        ear.catch_up()
        return [Source(r.offset, r.key.decode(), r.value) for r in ear.records]
    finally:
        ear.close()


def _pin(records: list[Any]) -> Pin:
    """What was in force before the partition's first event."""
    for record in records:
        for event in decode_record(record.value).events:
            if isinstance(event, Pin):
                return event
    raise AssertionError("no pin in the events")
