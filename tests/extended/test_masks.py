"""What is masked, and above all what is not."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopstream.fingerprint.extended.calls import extended_call
from loopstream.fingerprint.extended.mask import mask
from loopstream.fingerprint.extended.outcomes import extended_outcome


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("12:10:05 refused", "12:11:59 refused"),
        ("2026-06-17T12:10:05.123Z x", "2026-06-18T01:02:03Z x"),
        ("Mon Jun 17 12:10:05 UTC 2026", "Tue Jun 18 09:00:00 UTC 2026"),
        ("took 12ms", "took 9 ms"),
        ("passed in 0.12s", "passed in 3.4s"),
        ("id 3f2504e0-4f89-11d3-9a0c-0305e82c3301", "id 22222704-0000-41d3-8a0c-0305e82c3302"),
        ("build 0a1b2c3d4e5f", "build ffeeddccbbaa99"),
        ("saved /tmp/tmpab12cd/out.txt", "saved /tmp/tmpzz98yy/out.txt"),
        ("attempt 3 failed", "attempt 12 failed"),
        ("Retry-After: 20", "Retry-After: 31"),
        ("pid=4001", "pid=77"),
        ("req=107922", "req=297978"),
    ],
)
def test_volatile_parts_are_equal(one: str, other: str) -> None:
    assert mask(one) == mask(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("lines 1-100", "lines 101-200"),
        ("[3/120] compiling", "[4/120] compiling"),
        ("downloaded 1048576 bytes", "downloaded 2097152 bytes"),
        ("100000 of 400000", "200000 of 400000"),
        ("size: 1000000", "size: 2000000"),
        ("3 passed, 8 failed", "4 passed, 7 failed"),
        ("a.ts:10:25", "a.ts:11:25"),
        ("/tmp/project/a.py", "/tmp/project/b.py"),
        ("page 12", "page 13"),
    ],
)
def test_short_integers_and_progress_are_not(one: str, other: str) -> None:
    assert mask(one) != mask(other)


@given(st.text(max_size=200))
def test_masking_twice_changes_nothing_more(text: str) -> None:
    once = mask(text)
    assert mask(mask(once)) == mask(once)


def test_long_texts_take_linear_time() -> None:
    begun = time.process_time()
    for text in ("1" * 200_000, "a1" * 100_000, "/tmp/" * 40_000, "12:" * 60_000, "0a" * 100_000):
        mask(text)
    assert time.process_time() - begun < 60


def signed(args: object) -> bytes:
    made = extended_call("t", args)
    return made.masked or made.args


def test_arguments_as_json_text_equal_the_object() -> None:
    assert signed('{"a": 1, "b": [2]}') == signed({"b": [2], "a": 1})
    assert extended_call("t", '{"a":1}').args == extended_call("t", {"a": 1}).args


def test_what_names_a_thing_stays_exact() -> None:
    assert signed({"order_id": "3f2504e0-4f89-11d3-9a0c-0305e82c3301"}) != signed(
        {"order_id": "3f2504e0-4f89-11d3-9a0c-0305e82c3302"}
    )
    assert signed({"date": "2026-11-01"}) != signed({"date": "2026-11-02"})
    assert signed({"request_id": "a-1"}) == signed({"request_id": "a-2"})
    assert signed({"path": "./a.py"}) == signed({"path": "a.py"})


def test_failures_have_one_class_whatever_they_say() -> None:
    def of(error: str) -> bytes | None:
        return extended_outcome("t", {}, error=error).failure_class

    assert of("HTTP 429 Too Many Requests") == of("http 429: rate limit, slow down")
    assert of("connection refused by a") == of("ECONNREFUSED")
    assert of("Error: 'x' is undefined") != of("Error: 'y' is undefined")
    exits = [
        extended_outcome("exec", {}, result={"details": {"exitCode": code, "aggregated": "x"}})
        for code in (1, 2)
    ]
    assert exits[0].failure_class != exits[1].failure_class


def test_a_key_changes_every_digest() -> None:
    args = {"command": "curl https://a.example/x", "note": "some words here 12:00:01"}
    plain, keyed = extended_call("exec", args), extended_call("exec", args, b"k" * 32)
    for name in ("args", "masked", "leaves", "words", "subject"):
        assert getattr(plain, name) != getattr(keyed, name), name
    one = extended_outcome("exec", args, error="connection refused, server 'crm'")
    other = extended_outcome("exec", args, error="connection refused, server 'crm'", key=b"k" * 32)
    for name in ("result", "failure_class", "server"):
        assert getattr(one, name) != getattr(other, name), name
