"""Raw values are read by the fast reader where it agrees with Python's own, and by that else."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopstream.events import EVENT, ToolCall
from loopstream.fingerprint.canonical import canonical_bytes
from loopstream.partition.raw import RawValueError, fingerprint_raw_call, parse_raw
from tests.partition.driver import raw_call

NUMBERS = st.from_regex(
    r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True
)
STRINGS = st.text(max_size=8).map(json.dumps) | st.sampled_from(
    ('"\\ud800"', '"\\ud83d\\ude00"', '"\\u0000"', '"\\/"', '"\\udc00\\ud800"')
)
TEXTS = st.recursive(
    NUMBERS | STRINGS | st.sampled_from(("null", "true", "false")),
    lambda inner: (
        st.lists(inner, max_size=4).map(lambda items: f"[ {','.join(items)} ]")
        | st.lists(st.tuples(STRINGS, inner), max_size=4).map(
            lambda items: "{" + ",".join(f"{name} : {item}" for name, item in items) + "}"
        )
    ),
    max_leaves=10,
)


@given(TEXTS)
def test_both_readers_come_to_the_same_text(text: str) -> None:
    assert canonical_bytes(parse_raw("args", text)) == canonical_bytes(json.loads(text))


@pytest.mark.parametrize(
    "text", ["", "NaN", "[Infinity]", "{", "[1,]", "'a'", '"\x01"', "01", "\ufeff1", "1 2"]
)
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(RawValueError, match="args"):
        parse_raw("args", text)


def test_remembered_arguments_are_those_of_their_key() -> None:
    event = EVENT.validate_python(raw_call('{"a": 1}'))
    assert isinstance(event, ToolCall)
    keys = (None, b"k" * 32, b"l" * 32, None)
    seen = [fingerprint_raw_call(event, "documented", key, None).fp for key in keys]
    digests = [fp.documented.args for fp in seen if fp is not None and fp.documented is not None]
    assert len(set(digests)) == 3
    assert digests[0] == digests[3]
