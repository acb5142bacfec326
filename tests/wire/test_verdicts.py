"""Verdicts and dead letters as record values."""

from __future__ import annotations

import json
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopstream.errors import DataError
from loopstream.events import Action, DeadLetter, Evidence, Level, RejectCode, Target, Verdict
from loopstream.wire.limits import MAX_VERDICT_BYTES
from loopstream.wire.verdicts import Format, decode_dead_letter, decode_verdict, encode_model

LAW = settings(derandomize=True, database=None, deadline=None, max_examples=300)
SIGNATURE = "exec:" + "0" * 64
VERDICT = Verdict(
    id="0" * 32,
    seq=1,
    scope="r1",
    run="r1",
    action=Action.BLOCK,
    level=Level.CRITICAL,
    detector="generic_repeat",
    count=20,
    threshold=20,
    tool="exec",
    applies_to=(
        Target(signature=SIGNATURE),
        Target(tool="exec"),
        Target(tool="exec", exclude=(SIGNATURE,)),
    ),
    key="generic:exec",
    reason="Why not.",
    evidence=Evidence(event="e1", partition=3, offset=2**40, counted=(1, 2, 3)),
    profile="documented",
    settings="0" * 16,
    event_time=1,
    append_time=2,
)
LETTER = DeadLetter(
    code=RejectCode.INVALID,
    topic="t.events",
    partition=0,
    offset=7,
    index=-1,
    detail="tool: missing",
    sha256=b"d" * 32,
    append_time=1,
    sample=b"\xff\x00",
)


@pytest.mark.parametrize("form", ["msgpack", "json"])
def test_round_trip(form: Format) -> None:
    assert decode_verdict(encode_model(VERDICT, form)) == VERDICT
    assert decode_dead_letter(encode_model(LETTER, form)) == LETTER
    assert encode_model(VERDICT, form) == encode_model(VERDICT.model_copy(), form)


def test_a_target_is_spelled_except_on_the_wire() -> None:
    fields: dict[str, Any] = json.loads(encode_model(VERDICT, "json"))
    assert fields["applies_to"][2] == {"tool": "exec", "except": [SIGNATURE]}
    assert msgpack.unpackb(encode_model(VERDICT))["applies_to"][2]["except"] == [SIGNATURE]


def test_what_a_target_covers() -> None:
    other = "exec:" + "1" * 64
    by_call, by_tool, by_rest = VERDICT.applies_to
    assert by_call.covers("exec", SIGNATURE)
    assert not by_call.covers("exec", other)
    assert by_tool.covers("exec", SIGNATURE)
    assert by_tool.covers("exec", other)
    assert not by_tool.covers("read", other)
    assert by_rest.covers("exec", other)
    assert not by_rest.covers("exec", SIGNATURE)


def changed(**changes: Any) -> bytes:
    fields: dict[str, Any] = msgpack.unpackb(encode_model(VERDICT))
    return bytes(msgpack.packb(fields | changes))


BAD = {
    "no value": None,
    "nothing": b"",
    "no map": b"\x07",
    "oversize": b"\x00" * (MAX_VERDICT_BYTES + 1),
    "truncated": encode_model(VERDICT)[:-1],
    "trailing": encode_model(VERDICT) + b"\x00",
    "truncated JSON": encode_model(VERDICT, "json")[:-1],
    "JSON bomb": b'{"x":' * 40_000,
    "msgpack bomb": b"\x91" * 100_000,
    "nested lies about lengths": b"\xdd\x00\x03\xff\x00" * 1_000 + b"\x00" * 257_000,
    "text that is no UTF-8": encode_model(VERDICT).replace(b"Why not.", b"Why\xff\xfe..."[:8]),
    "short id": changed(id="0" * 31),
    "unknown action": changed(action="explode"),
    "unknown level": changed(level="fatal"),
    "version 2": changed(v=2),
    "another type": changed(type="event"),
    "negative count": changed(count=-1),
    "too long a reason": changed(reason="x" * 1_025),
    "too long a key": changed(key="x" * 4_097),
    "no evidence": changed(evidence=None),
    "too much evidence": changed(
        evidence={"event": "e", "partition": 0, "offset": 0, "counted": [1] * 65}
    ),
    "too many exceptions": changed(applies_to=[{"tool": "t", "except": ["x"] * 1_025}]),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_verdict_is_a_data_error(name: str) -> None:
    with pytest.raises(DataError) as caught:
        decode_verdict(BAD[name])
    assert caught.value.hint
    assert len(str(caught.value)) < 200


@LAW
@given(st.data())
def test_damaged_verdicts_are_verdicts_or_data_errors(data: st.DataObject) -> None:
    form: Format = data.draw(st.sampled_from(("msgpack", "json")))
    value = bytearray(encode_model(VERDICT, form))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(value) - 1))
        value[at : at + 1] = data.draw(st.binary(max_size=2))
    try:
        assert isinstance(decode_verdict(bytes(value)), Verdict)
    except DataError as error:
        assert error.exit_code == 5  # noqa: PT017 - either answer is right


def test_unknown_fields_of_a_later_version_are_ignored() -> None:
    assert decode_verdict(changed(later={"x": 1})) == VERDICT
