"""Records that a stranger, a broken client or bad luck might write."""

from __future__ import annotations

import random
from collections.abc import Iterator

import msgpack

from tests.partition.test_fuzz import bases, damaged


def _deep(levels: int) -> bytes:
    """An event that is good but for something deep that nobody asked for."""
    nest: object = []
    for _ in range(levels):
        nest = {"x": [nest]}
    event = {"v": 1, "type": "run_started", "run": "r", "time": 1, "more": nest}
    return bytes(msgpack.packb({"v": 1, "events": [event, event | {"more": None}]}))


_BOMBS = (
    _deep(4),
    _deep(20),
    _deep(200),
    b"\xdd\xff\xff\xff\xff",  # an array that claims four thousand million entries
    b"\xdf\xff\xff\xff\xff\xa1v\x01",
    b"\xc6\xff\xff\xff\xff" + b"x" * 100,
    b"\x91" * 60_000 + b"\x01",
    b"\x81\xa1a" * 30_000 + b"\x01",
    b'{"a":' * 20_000,
    b"[" * 60_000,
    b'{"v":1,"type":"' + b"\\u0000" * 10_000,
    b'{"time":1e' + b"9" * 5_000 + b"}",
    b'{"seq":' + b"9" * 50_000 + b"}",
    b"\xc7\x00\x01" * 500,
    msgpack.packb({"v": 1, "events": [{}] * 30_000}),
    msgpack.packb({"v": 1, "events": [[[[[[]]]]]] * 10_000}),
)


def records(seed: int) -> Iterator[bytes]:
    """Damaged good records for the most part; noise of any size; now and then a bomb."""
    chance = random.Random(seed)
    near = damaged(chance)
    while True:
        kind = chance.random()
        if kind < 0.80:
            yield next(near)
        elif kind < 0.90:
            yield chance.randbytes(int(2 ** chance.uniform(0, 14)))
        elif kind < 0.99:
            yield _spliced(chance)
        else:
            yield chance.choice(_BOMBS)


def _spliced(chance: random.Random) -> bytes:
    """The begin of one good record, and the end of another."""
    one, other = chance.choice(bases()), chance.choice(bases())
    return one[: chance.randrange(len(one))] + other[chance.randrange(len(other)) :]
