"""Random and damaged bytes: no exception, and every record is accounted for."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from loopstream.policy.deployment import Deployment, Profile
from loopstream.wire.codec import decode_record
from tests.partition.driver import (
    Feed,
    Fields,
    Record,
    as_json,
    call,
    ended,
    frame,
    outcome,
    raw_call,
    raw_outcome,
    single,
    started,
)

RECORDS = 20_000
ON = {"enabled": True, "warningThreshold": 2, "criticalThreshold": 4, "unknownToolThreshold": 2}


def events() -> list[Fields]:
    fp = {"v": 1, "reference": {"args": b"a" * 32, "result": b"r" * 32}}
    return [
        call(seq=1, epoch=1, call_id="c1", agent="a", runner="x"),
        call("r2", disposition="gated"),
        outcome(seq=2, epoch=1, call_id="c1"),
        outcome("r2", fp=fp | {"documented": {"args": b"a" * 32, "result": b"r" * 32}}),
        raw_call('{"command": "ls", "n": [1, 2.5, null]}', tool="exec"),
        raw_outcome(tool="exec", result='{"details": {"status": "failed", "exitCode": 1}}'),
        raw_outcome(error='"Unknown tool: missing"'),
        started("r3", resumed=True, session="s"),
        started(None, type="events_lost", count=3, session="s"),
        {"v": 1, "type": "compaction", "run": "r1", "time": 1, "retried": True},
        ended("r3"),
    ]


def bases() -> list[bytes]:
    every = events()
    return [frame(every), *map(single, every), *map(as_json, every), frame(every[:3])]


def damaged(chance: random.Random) -> Iterator[bytes]:
    """Noise, and good records with bytes changed, cut out, doubled or cut off."""
    good = bases()
    while True:
        if chance.random() < 0.1:
            yield chance.randbytes(chance.randrange(200))
            continue
        data = bytearray(chance.choice(good))
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(data) or 1)
            match chance.randrange(5):
                case 0:
                    data[at : at + 1] = bytes([chance.randrange(256)])
                case 1:
                    del data[at : at + chance.randrange(8)]
                case 2:
                    data[at:at] = data[at : at + chance.randrange(8)]
                case 3:
                    data[at:at] = chance.randbytes(chance.randrange(4))
                case _:
                    del data[at + len(data) * 3 // 4 :]
        yield bytes(data)


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["documented", "reference-2026-9"])
def test_every_damaged_record_is_accounted_for(profile: Profile) -> None:
    feed = Feed(deployment=Deployment("test", profile=profile), settings=ON, samples=True)
    partition = feed.partition
    source = damaged(random.Random(20_261_130))
    notes = ("applied", "duplicate", "rejected", "pin", "foreign_pin", "control")
    for offset in range(RECORDS):
        value = next(source)
        decoded = decode_record(value)
        expected = len(decoded.events) + len(decoded.rejects)
        before = sum(partition.counts[note] for note in notes)
        letters = len(partition.dead_letters)
        assert partition.apply(Record(offset, value))
        assert sum(partition.counts[note] for note in notes) == before + expected
        new = partition.dead_letters[letters:]
        assert [letter.offset for letter in new] == [offset] * len(new)
        if offset % 500 == 0:
            feed.checkpoint()
    seen = {note: partition.counts[note] for note in notes}
    assert seen["rejected"] == len(partition.dead_letters) > RECORDS // 10
    assert seen["applied"] > RECORDS // 10
    assert len({letter.code for letter in partition.dead_letters}) >= 5
    feed.checkpoint()
    feed.restart()
    for row in list(feed.rows):
        if row[:1] != b"\xff":
            feed.feed(call(row.decode().lstrip("\0")))
