import dataclasses
import datetime as dt
import decimal
import enum
import json
import sys
from collections import OrderedDict
from pathlib import Path
from types import MappingProxyType
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from loopstream.fingerprint.canonical import MISSING, canonical
from loopstream.sdk.values import exception_text, json_text, outcome_json, to_json
from loopstream.wire.limits import MAX_RAW_BYTES, MAX_RAW_DEPTH

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


class Opaque:
    def __str__(self) -> str:
        raise RuntimeError("no")

    def __repr__(self) -> str:
        return f"<at 0x{id(self):x}>"


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


@dataclasses.dataclass
class Point:
    x: int
    y: object


class Form(BaseModel):
    name: str


ODD: list[object] = [
    Opaque(),
    object,
    {1, 2},
    {Opaque()},
    b"x",
    Point(1, Opaque()),
    {1: 2, None: 3, 4.5: 6},
    {Opaque(): 1},
    {(1, 2): 3},
    float("nan"),
    10**5000,
    {10**5000: 1},
    "\ud800",
    print,
    Colour.RED,
    decimal.Decimal("1.10"),
    iter(()),
]
# By their place: not all of them can be shown.
odd = st.integers(0, len(ODD) - 1).map(lambda place: ODD[place])
anything = st.recursive(
    plain | odd,
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(plain)
def test_json_stays_as_it_is(value: object) -> None:
    made = to_json(value)
    assert json.loads(json_text(made)) == value
    assert made.data == canonical(value).encode()
    assert not made.oversize


@given(anything)
def test_any_value_becomes_json_and_always_the_same(value: object) -> None:
    made = to_json(value)
    assert made.data == canonical(made.value).encode()
    assert to_json(value).data == made.data


@given(anything)
def test_an_outcome_is_read_as_any_value_is(value: object) -> None:
    made, whole = outcome_json(value), to_json(value)
    assert made._replace(data=b"") == whole._replace(data=b"") or value != value  # noqa: PLR0124
    assert canonical(made.value) == canonical(whole.value)
    assert made.data in {b"", whole.data}


@pytest.mark.parametrize(
    "value",
    [
        "\x00" * (MAX_RAW_BYTES // 6),
        ["é" * (MAX_RAW_BYTES // 2)],
        {"a" * MAX_RAW_BYTES: 1},
        [10**5000] * 100,
        [1.5] * (MAX_RAW_BYTES // 4),
    ],
)
def test_no_outcome_over_the_bounds_passes_for_a_small_one(value: object) -> None:
    assert outcome_json(value).oversize is to_json(value).oversize


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (dt.datetime(2026, 1, 2, tzinfo=dt.UTC), '"2026-01-02T00:00:00+00:00"'),
        (dt.date(2026, 1, 2), '"2026-01-02"'),
        (decimal.Decimal("1.10"), '"1.10"'),
        (UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (Path("a/b"), '"a/b"'),
        (Colour.RED, '"red"'),
        (Level.HIGH, "3"),
        ({"b", "a"}, '["a","b"]'),
        ((1, "ä"), '[1,"ä"]'),
        ({1: 2, None: 3}, '{"1":2,"null":3}'),
        (Point(1, None), '{"x":1,"y":null}'),
        (Form(name="n"), '{"name":"n"}'),
        (MappingProxyType({"a": 1}), '{"a":1}'),
        (OrderedDict(b=1, a=2), '{"a":2,"b":1}'),
        (range(3), "[0,1,2]"),
        (ValueError("bad"), '"bad"'),
        ({(1, 2): 3}, '{"[1, 2]":3}'),
        (1e400, '"Infinity"'),
    ],
)
def test_well_known_types_have_a_fixed_spelling(value: object, text: str) -> None:
    assert to_json(value).data.decode() == text


def test_of_other_objects_only_the_type_counts() -> None:
    assert to_json([Opaque()]) == to_json([Opaque()])
    assert to_json(object()).data == b'"<builtins.object>"'


def test_bytes_count_by_their_digest() -> None:
    assert to_json(b"secret") == to_json(bytearray(b"secret"))
    assert to_json(b"secret") != to_json(b"public")
    assert b"secret" not in to_json(b"secret").data


def test_no_value_is_not_null() -> None:
    assert not to_json(MISSING).given
    assert to_json(None).given
    assert to_json(MISSING).data != to_json(None).data


@pytest.mark.parametrize("extra", [-1, 0])
def test_the_bound_is_in_bytes(extra: int) -> None:
    text = "é" * ((MAX_RAW_BYTES - 2) // 2 + 1 + extra)
    assert to_json(text).oversize is (extra == 0)


def nested(depth: int) -> object:
    value: object = 1
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


def test_the_bound_is_in_levels_too() -> None:
    assert not to_json(nested(MAX_RAW_DEPTH)).oversize
    assert not outcome_json(nested(MAX_RAW_DEPTH)).oversize
    assert to_json(nested(MAX_RAW_DEPTH + 1)).oversize
    assert outcome_json(nested(MAX_RAW_DEPTH + 1)).oversize
    assert not to_json([[] for _ in range(MAX_RAW_DEPTH + 1)]).oversize


def test_bombs_are_cut() -> None:
    deep = to_json(nested(sys.getrecursionlimit() * 3))
    assert deep.oversize
    loop: list[object] = []
    loop += [loop, loop]
    circular = to_json(loop)
    assert circular.oversize
    assert outcome_json(loop).oversize
    assert len(circular.data) < MAX_RAW_BYTES


def test_an_exception_is_its_message() -> None:
    assert exception_text(KeyError("k")) == "'k'"
    assert exception_text(TimeoutError()) == "TimeoutError"

    class RudeError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    assert exception_text(RudeError()).endswith("RudeError")


def test_numbers_are_written_as_they_were_given() -> None:
    assert json_text(to_json([2**60 + 1, 1.0, 1e30])) == "[1152921504606846977,1.0,1e+30]"
