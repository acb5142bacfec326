"""A short run of what ``make fuzz`` does, and laws over bytes that hypothesis makes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopstream.wire.codec import decode_record
from tests.fuzz.run import fuzz
from tests.partition.driver import Feed, Record

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def test_hostile_records_are_accounted_for() -> None:
    outcome = fuzz(3_000, seed=4)
    assert outcome.clean, outcome.closing_line()
    assert {"undecodable", "too_deep", "unknown_type", "invalid"} <= outcome.codes.keys()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_hundred_thousand_are() -> None:
    outcome = fuzz(100_000, seed=1)
    assert outcome.clean, outcome.closing_line()


@given(st.binary(max_size=2_000), st.none() | st.binary(max_size=20))
def test_any_bytes_are_accounted_for(value: bytes, content_type: bytes | None) -> None:
    decoded = decode_record(value, content_type)
    assert len(decoded.events) == len(decoded.indexes)
    # An empty frame holds nothing, and that is all that may be told of it.
    assert decoded.events or decoded.rejects or b"events" in value


@given(JSON, st.sampled_from(["tool_call", "tool_outcome", "control", "pin", "run_started"]))
def test_any_fields_are_accounted_for(body: object, kind: str) -> None:
    event = {"v": 1, "type": kind, "run": "r", "time": 1, "args": body, "tool": body, "body": body}
    value = json.dumps(event).encode("utf-8", "surrogatepass")
    feed = Feed()
    assert feed.partition.apply(Record(0, value))
    assert sum(feed.partition.counts.values())
