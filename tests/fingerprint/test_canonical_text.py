"""The canonical text against a second writer, made straight from the rules and slow."""

from __future__ import annotations

import hashlib
import hmac
import json
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from loopstream.fingerprint.canonical import (
    MISSING,
    canonical,
    canonical_bytes,
    digest,
    spelled,
)

SHORT_ESCAPES = {
    0x22: '\\"',
    0x5C: "\\\\",
    0x08: "\\b",
    0x09: "\\t",
    0x0A: "\\n",
    0x0C: "\\f",
    0x0D: "\\r",
}


def units(text: str) -> list[int]:
    data = text.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]


def naive_string(text: str) -> str:
    shown = ""
    queue = units(text)
    while queue:
        unit = queue.pop(0)
        if 0xD800 <= unit < 0xDC00 and queue and 0xDC00 <= queue[0] < 0xE000:
            shown += chr(0x10000 + (unit - 0xD800) * 0x400 + queue.pop(0) - 0xDC00)
        elif unit in SHORT_ESCAPES:
            shown += SHORT_ESCAPES[unit]
        elif unit < 0x20 or 0xD800 <= unit < 0xE000:
            shown += f"\\u{unit:04x}"
        else:
            shown += chr(unit)
    return f'"{shown}"'


def naive_number(value: float) -> str:
    """JavaScript's Number::toString, from the digits and the place of the decimal point."""
    try:
        double = float(value)
    except OverflowError:
        double = math.inf if value > 0 else -math.inf
    if math.isinf(double):
        return '"Infinity"' if double > 0 else '"-Infinity"'
    if double == 0:
        return "0"
    sign = "-" if double < 0 else ""
    shortest = Decimal(repr(abs(double))).normalize().as_tuple()
    digits = "".join(map(str, shortest.digits))
    point = len(digits) + int(shortest.exponent)
    if len(digits) <= point <= 21:
        return sign + digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return sign + digits[:point] + "." + digits[point:]
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    mantissa = digits if len(digits) == 1 else digits[0] + "." + digits[1:]
    return f"{sign}{mantissa}e{'+' if point > 0 else '-'}{abs(point - 1)}"


def naive(value: Any) -> str:
    if value is MISSING:
        return "undefined"
    if value is None:
        return "null"
    if value is True or value is False:
        return str(value).lower()
    if isinstance(value, str):
        return naive_string(value)
    if isinstance(value, list):
        return "[" + ",".join(naive(item) for item in value) + "]"
    if isinstance(value, dict):
        keys = sorted(value, key=units)
        return "{" + ",".join(naive_string(key) + ":" + naive(value[key]) for key in keys) + "}"
    return naive_number(value)


SPECIAL = [
    *'\ud83d\ude00\U0001f600\uff21"\\/\x00\x1b\x7f\x80\u2028\ufeff\uffff',
    "a",
    "Z",
    "0",
    "9",
]
texts = st.text(st.sampled_from(SPECIAL) | st.characters(exclude_categories=()), max_size=8)
numbers = st.integers() | st.integers(-(10**400), 10**400) | st.floats(allow_nan=False)
leaves = st.none() | st.booleans() | numbers | texts
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=25,
)
plain_leaves = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=20)
plain_values = st.recursive(
    plain_leaves,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text(st.characters(max_codepoint=127)), inner, max_size=8)
    ),
    max_leaves=25,
)


@given(values | plain_values)
@example({"\U0001f600": 1, "\uff21": 2, "\ud83d": 3, "10": 4, "9": 5})
@example([{}, [], "", {"": [[]]}])
def test_text_equals_the_one_written_straight_from_the_rules(value: object) -> None:
    assert canonical(value) == naive(value)


@given(values | plain_values)
def test_both_writers_give_the_same_bytes(value: object) -> None:
    assert canonical_bytes(value) == spelled(value, str)


@pytest.mark.parametrize("block", range(0, 0x11000, 0x1000))
def test_every_character_is_written_by_the_rules(block: int) -> None:
    # The last block stands for all that lies beyond the basic plane.
    start = block if block < 0x10000 else 0x10F000
    for code in range(start, start + 0x1000):
        assert canonical({"k": chr(code)}) == f'{{"k":{naive_string(chr(code))}}}'


@pytest.mark.parametrize(
    ("spelling", "text"),
    [
        ("-0", "0"),
        ("-0.0", "0"),
        ("-0e5", "0"),
        ("100e-2", "1"),
        ("1E0", "1"),
        ("-1.50", "-1.5"),
        ("4.35", "4.35"),
        ("0.1", "0.1"),
        ("0.30000000000000004", "0.30000000000000004"),
        ("0.000001", "0.000001"),
        ("-1.5e-6", "-0.0000015"),
        ("0.0000001", "1e-7"),
        ("1.25e-7", "1.25e-7"),
        ("1e16", "10000000000000000"),
        ("123456789012345678", "123456789012345680"),
        ("9007199254740991", "9007199254740991"),
        ("9007199254740992", "9007199254740992"),
        ("9007199254740993", "9007199254740992"),
        ("-9007199254740995", "-9007199254740996"),
        ("18446744073709551616", "18446744073709552000"),
        ("1e20", "100000000000000000000"),
        ("1e21", "1e+21"),
        ("1000000000000000000000", "1e+21"),
        ("-1.5e300", "-1.5e+300"),
        ("1.7976931348623157e308", "1.7976931348623157e+308"),
        ("5e-324", "5e-324"),
        ("1e-400", "0"),
        ("1e400", '"Infinity"'),
        ("-1e400", '"-Infinity"'),
        ("1" + "0" * 4000, '"Infinity"'),
        ("-1" + "0" * 4000, '"-Infinity"'),
    ],
)
def test_a_number_is_written_as_javascript_writes_the_double(spelling: str, text: str) -> None:
    assert canonical(json.loads(spelling)) == text
    assert canonical([json.loads(spelling)]) == f"[{text}]"


@given(st.integers(-(10**25), 10**25), st.integers(0, 6))
def test_the_spelling_of_a_whole_number_does_not_matter(number: int, shift: int) -> None:
    spellings = [f"{number}", f"{number}.0", f"{number}e0", f"{number}{'0' * shift}E-{shift}"]
    assert {canonical(json.loads(spelling)) for spelling in spellings} == {canonical(number)}


@pytest.mark.parametrize("digits", [400, 5000, 20_000])
def test_an_int_too_long_to_print_is_an_infinity(digits: int) -> None:
    values = [10**digits, -(10**digits)]
    assert canonical(values) == '["Infinity","-Infinity"]'


def test_overflow_equals_the_string_that_it_becomes() -> None:
    assert canonical(json.loads("[1e999]")) == canonical(["Infinity"])


def test_what_only_pythons_parser_takes_has_a_text_too() -> None:
    assert canonical(json.loads("[NaN, Infinity]")) == '["NaN","Infinity"]'


def test_missing_is_no_null() -> None:
    assert canonical(MISSING) == "undefined"
    assert canonical({"status": MISSING, "b": None}) == '{"b":null,"status":undefined}'


def test_digit_keys_are_sorted_as_text() -> None:
    assert canonical({"9": 1, "10": 2, "a": 3, "B": 4}) == '{"10":2,"9":1,"B":4,"a":3}'


def test_text_is_not_normalised() -> None:
    assert canonical("e\u0301") != canonical("\u00e9")


@pytest.mark.parametrize("leaf", ["x", 0.5])
def test_values_may_nest_as_deep_as_callers_let_them(leaf: object) -> None:
    value: object = leaf
    for level in range(128):
        value = [value] if level % 2 else {"k": value}
    assert canonical(value) == naive(value)


@pytest.mark.parametrize("value", [{1: "a"}, {None: 0.5}, {"a": object()}, [b"x"], {"a": {1, 2}}])
def test_what_has_no_json_form_is_refused(value: object) -> None:
    with pytest.raises(TypeError):
        canonical(value)


def test_a_tuple_is_an_array() -> None:
    assert canonical({"a": (1, "b", (0.5,))}) == '{"a":[1,"b",[0.5]]}'


@given(values, st.binary(max_size=80))
def test_the_digest_is_of_the_utf8_bytes(value: object, key: bytes) -> None:
    text = canonical(value)
    assert digest(text) == hashlib.sha256(text.encode()).digest()
    assert digest(text, key) == hmac.new(key, text.encode(), "sha256").digest()
    assert digest(text) == digest(canonical_bytes(value))
