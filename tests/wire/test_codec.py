"""Events to records and back, in either format, alone and in frames."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from loopstream.events import (
    EVENT,
    CallDigests,
    CallFingerprint,
    Compaction,
    Control,
    Event,
    EventsLost,
    OutcomeDigests,
    OutcomeFingerprint,
    Pin,
    RunEnded,
    RunStarted,
    ToolCall,
    ToolOutcome,
)
from loopstream.wire.codec import (
    FRAME_TYPE,
    JSON_TYPE,
    decode_record,
    encode_frame,
    encode_json,
    event_fields,
    is_json,
)
from loopstream.wire.limits import MAX_EVENT_BYTES, MAX_EVENTS_PER_FRAME

LAW = settings(derandomize=True, database=None, deadline=None, max_examples=80)
TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20)
NAME = st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
DIGEST = st.binary(min_size=32, max_size=32)
COUNTER = st.integers(0, 2**63 - 1)
ENVELOPE: dict[str, st.SearchStrategy[Any]] = {
    "v": st.just(1),
    "id": st.none() | TEXT,
    "run": st.none() | TEXT,
    "agent": st.none() | TEXT,
    "session": st.none() | TEXT,
    "runner": st.none() | TEXT,
    "epoch": st.none() | COUNTER,
    "seq": st.none() | COUNTER,
    "time": st.integers(0, 2**53 - 1),
    "trace": st.none() | TEXT,
    "traceparent": st.none() | TEXT,
}
CALL = st.builds(CallDigests, args=DIGEST, poll=st.booleans())
OUTCOME = st.builds(
    OutcomeDigests,
    args=DIGEST,
    poll=st.booleans(),
    result=st.none() | DIGEST,
    failed=st.booleans(),
    unknown_tool=st.none() | NAME,
    kind=st.sampled_from((None, "tool-loop-veto", "terminal-exec-failure")),
    no_progress=st.booleans(),
    failure=st.none() | DIGEST,
)
JSON_TEXT = st.none() | st.sampled_from(('{"a": "\\ud800"}', "null", "[1e400]", '"\u20ac"'))
EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(
        ToolCall,
        type=st.just("tool_call"),
        tool=NAME,
        call_id=st.none() | TEXT,
        disposition=st.sampled_from(("executed", "refused", "gated")),
        fp=st.none() | st.builds(CallFingerprint, documented=CALL, reference=st.none() | CALL),
        args=JSON_TEXT,
        **ENVELOPE,
    ),
    st.builds(
        ToolOutcome,
        type=st.just("tool_outcome"),
        tool=NAME,
        call_id=st.none() | TEXT,
        executed=st.booleans(),
        fp=st.none() | st.builds(OutcomeFingerprint, documented=OUTCOME, key_id=st.none() | TEXT),
        result=JSON_TEXT,
        error=JSON_TEXT,
        **ENVELOPE,
    ),
    st.builds(Compaction, type=st.just("compaction"), retried=st.booleans(), **ENVELOPE),
    st.builds(RunStarted, type=st.just("run_started"), resumed=st.booleans(), **ENVELOPE),
    st.builds(RunEnded, type=st.just("run_ended"), reason=st.none() | TEXT, **ENVELOPE),
    st.builds(EventsLost, type=st.just("events_lost"), count=st.integers(1, 2**53 - 1), **ENVELOPE),
    st.builds(
        Control,
        v=st.just(1),
        type=st.just("control"),
        time=st.integers(0, 2**53 - 1),
        source=st.sampled_from(("config", "commands")),
        offset=COUNTER,
        sha256=DIGEST,
        key=TEXT,
        body=st.none() | TEXT,
    ),
    st.builds(
        Pin,
        v=st.just(1),
        type=st.just("pin"),
        time=st.integers(0, 2**53 - 1),
        config_offset=st.integers(-1, 2**60),
        commands_offset=st.integers(-1, 2**60),
        settings=st.dictionaries(TEXT, TEXT, max_size=3),
        policy=TEXT,
    ),
)


@LAW
@given(st.lists(EVENTS, max_size=6))
def test_a_frame_holds_its_events(events: list[Event]) -> None:
    decoded = decode_record(encode_frame(events))
    assert decoded.events == events
    assert list(decoded.indexes) == list(range(len(events)))
    assert decoded.rejects == []


@LAW
@given(EVENTS)
def test_every_form_of_one_event_is_the_same_event(event: Event) -> None:
    forms = (
        (encode_json(event), None),
        (encode_json(event), JSON_TYPE),
        (bytes(msgpack.packb(event_fields(event))), None),
        (bytes(msgpack.packb(event_fields(event))), FRAME_TYPE),
        (encode_frame([event]), FRAME_TYPE),
    )
    for value, content_type in forms:
        decoded = decode_record(value, content_type)
        assert (decoded.events, decoded.rejects) == ([event], [])


@LAW
@given(st.lists(EVENTS, min_size=1, max_size=5), st.data())
def test_unknown_fields_are_ignored(events: list[Event], data: st.DataObject) -> None:
    inner = st.none() | st.integers(-(2**60), 2**60) | TEXT | st.binary(max_size=5)
    more = data.draw(st.dictionaries(st.just("x-") | st.just("later"), inner | st.lists(inner)))
    fields = [event_fields(event) | more for event in events]
    assert decode_record(bytes(msgpack.packb({"v": 1, "events": fields, **more}))).events == events


@LAW
@given(st.binary(max_size=200), st.sampled_from((None, JSON_TYPE, FRAME_TYPE, b"text/plain", b"")))
def test_any_bytes_are_events_or_refused(value: bytes, content_type: bytes | None) -> None:
    decoded = decode_record(value, content_type)
    assert len(decoded.events) == len(list(decoded.indexes))
    assert all(len(reject.detail or "") <= 200 for reject in decoded.rejects)


def test_a_frame_of_the_largest_size() -> None:
    event = RunStarted(v=1, type="run_started", run="r", time=1)
    decoded = decode_record(encode_frame([event] * MAX_EVENTS_PER_FRAME))
    assert (len(decoded.events), decoded.rejects) == (MAX_EVENTS_PER_FRAME, [])


@pytest.mark.parametrize(("extra", "code"), [(0, None), (1, "oversize_event")])
def test_an_envelope_at_its_bound(extra: int, code: str | None) -> None:
    empty = b'{"v":1,"type":"run_started","run":"r","time":1,"x":""}'
    value = empty[:-2] + b"x" * (MAX_EVENT_BYTES - len(empty) + extra) + empty[-2:]
    codes = [reject.code.value for reject in decode_record(value).rejects]
    assert codes == ([] if code is None else [code])


@pytest.mark.parametrize(("depth", "code"), [(8, None), (9, "too_deep")])
@pytest.mark.parametrize("form", ["json", "msgpack", "frame"])
@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("run_started", ("x",)),
        ("run_started", ("fp",)),  # a field of others is an unknown one here
        ("tool_call", ("x",)),
        ("tool_call", ("result",)),
        ("tool_call", ("fp", "x")),
        ("tool_outcome", ("disposition",)),
        ("tool_outcome", ("fp", "documented", "x")),
        ("tool_call", ("fp", "documented", "result")),
        ("tool_call", ("fp", "extended", "unknown_tool")),
    ],
)
def test_depth_at_its_bound(
    depth: int, code: str | None, form: str, kind: str, place: tuple[str, ...]
) -> None:
    inner: Any = 1
    for _ in range(depth - len(place)):
        inner = [inner]
    event: dict[str, Any] = {"v": 1, "type": kind, "run": "r", "time": 1, "tool": "t"}
    at = event
    for name in place[:-1]:
        digest = "0" * 64 if form == "json" else b"0" * 32
        at = at.setdefault(name, {} if name == "fp" else {"args": digest})
    at[place[-1]] = inner
    if form == "json":
        value = json.dumps(event).encode()
    else:
        value = bytes(msgpack.packb({"v": 1, "events": [event]} if form == "frame" else event))
    codes = [reject.code.value for reject in decode_record(value).rejects]
    assert codes == ([] if code is None else [code])


def test_brackets_in_texts_are_no_depth() -> None:
    event = ToolCall(
        v=1, type="tool_call", run="r", time=1, tool="t", args='"' + "[{" * 500 + '\\"' + '"'
    )
    assert decode_record(encode_json(event)).events == [event]


@pytest.mark.parametrize(
    ("value", "content_type", "answer"),
    [
        (b"{", None, True),
        (b" {", None, True),
        (b"\n{", None, True),
        (b"", None, False),
        (b"\x80", None, False),
        (b"[", None, False),
        (b"{", b"application/msgpack", False),
        (b"\x80", b" APPLICATION/JSON ; charset=utf-8", True),
        (b"{", b"", False),
    ],
)
def test_which_format_a_record_has(value: bytes, content_type: bytes | None, answer: bool) -> None:
    assert is_json(value, content_type) is answer


def test_digests_are_hexadecimal_in_json_and_bytes_in_msgpack() -> None:
    digest = hashlib.sha256(b"x").digest()
    fp = CallFingerprint(documented=CallDigests(args=digest))
    event = ToolCall(v=1, type="tool_call", run="r", time=1, tool="t", fp=fp)
    assert json.loads(encode_json(event))["fp"]["documented"]["args"] == digest.hex()
    assert event_fields(event)["fp"]["documented"]["args"] == digest


@pytest.mark.parametrize("text", ["", "00" * 31, "00" * 33, "zz" * 32, " " + "00" * 32, 7, None])
def test_digests_in_json_are_64_hexadecimal_digits(text: object) -> None:
    fields = {"v": 1, "type": "tool_call", "run": "r", "time": 1, "tool": "t"}
    value = json.dumps(fields | {"fp": {"v": 1, "documented": {"args": text}}})
    with pytest.raises(ValidationError):
        EVENT.validate_json(value)
    assert [reject.code.value for reject in decode_record(value.encode()).rejects] == ["invalid"]


def test_digests_in_json_of_either_case_are_one() -> None:
    fields = {"v": 1, "type": "tool_call", "run": "r", "time": 1, "tool": "t"}

    def decoded(text: str) -> list[Event]:
        fp = {"v": 1, "documented": {"args": text}}
        return decode_record(json.dumps(fields | {"fp": fp}).encode()).events

    assert decoded("AB" * 32) == decoded("ab" * 32) != []
