"""Bad input: each kind has its own answer, and never costs a neighbour."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import msgpack
import pytest

from loopstream.partition.admission import TenantKey
from loopstream.policy.deployment import Deployment, Profile
from loopstream.wire.limits import MAX_EVENTS_PER_FRAME, MAX_RECORD_BYTES
from loopstream.wire.routing import partition_of
from tests.partition.driver import (
    DIGEST,
    RESULT,
    START,
    Feed,
    Fields,
    as_json,
    call,
    frame,
    outcome,
    raw_call,
    raw_outcome,
    single,
    started,
)

GOOD = call("neighbour")
JSON_HEADER = (("content-type", b"application/json"),)
FRAME_HEADER = (("content-type", b"application/msgpack"),)


def nested(levels: int, inner: Any = 1) -> Any:
    for _ in range(levels):
        inner = {"x": inner}
    return inner


def deep_msgpack(levels: int) -> bytes:
    """A frame whose one event nests ``levels`` arrays: no encoder makes it."""
    head = bytes(msgpack.packb({"v": 1}))
    assert head[:1] == b"\x81"
    events = b"\xa6events\x91\x81\xa1x" + b"\x91" * levels + b"\xc0"
    return b"\x82" + head[1:] + events


def bad_utf8(event: Fields) -> bytes:
    return bytes(msgpack.packb(event, unicode_errors="surrogatepass"))


WHOLE: dict[str, tuple[bytes | None, str]] = {
    "no value": (None, "null_value"),
    "empty": (b"", "undecodable"),
    "random bytes": (b"\xc1\xff\x00garbage", "undecodable"),
    "truncated frame": (frame([GOOD])[:-3], "undecodable"),
    "trailing bytes": (frame([GOOD]) + b"\x00", "undecodable"),
    "truncated JSON": (as_json(GOOD)[:-1], "undecodable"),
    "JSON that is no object": (b"[1]", "undecodable"),
    "a number": (b"\x07", "undecodable"),
    "oversize record": (b"\x00" * (MAX_RECORD_BYTES + 1), "oversize_record"),
    "oversize JSON": (b"{" + b" " * MAX_RECORD_BYTES + b"}", "oversize_record"),
    "JSON bomb": (b'{"x":' * 100_000 + b"1" + b"}" * 100_000, "too_deep"),
    "JSON array bomb": (b'{"x":' + b"[" * 100_000, "too_deep"),
    "msgpack bomb": (deep_msgpack(100_000), "undecodable"),
    "bare msgpack bomb": (b"\x91" * 100_000, "undecodable"),
    "lying array length": (b"\x82\xa1v\x01\xa6events\xdd\xff\xff\xff\xff", "too_many_events"),
    "lying map length": (b"\xdf\xff\xff\xff\xff", "undecodable"),
    "lying text length": (b"\x81\xa1v\xdb\xff\xff\xff\xff", "undecodable"),
    "integer keys": (bytes(msgpack.packb({1: 2})), "undecodable"),
    "extension type": (bytes(msgpack.packb({"v": msgpack.ExtType(5, b"x")})), "undecodable"),
    "frame of version 2": (bytes(msgpack.packb({"v": 2, "events": []})), "unknown_version"),
    "frame of no version": (bytes(msgpack.packb({"events": []})), "unknown_version"),
    "frame of version true": (bytes(msgpack.packb({"v": True, "events": []})), "unknown_version"),
    "events no list": (bytes(msgpack.packb({"v": 1, "events": {}})), "invalid"),
    "too many events": (frame([{}] * (MAX_EVENTS_PER_FRAME + 1)), "too_many_events"),
    "oversize event": (as_json(call(junk="x" * 70_000)), "oversize_event"),
    "lone surrogate in a JSON id": (
        b'{"v":1,"type":"run_started","run":"\\ud800","time":1}',
        "undecodable",
    ),
    "number beyond 64 bits in JSON": (
        as_json(started() | {"time": 2**70}),
        "invalid",
    ),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_bad_record_is_one_dead_letter(name: str) -> None:
    value, code = WHOLE[name]
    feed = Feed().feed(GOOD, value, GOOD)
    (letter,) = feed.partition.dead_letters
    assert letter.code.value == code
    assert (letter.topic, letter.partition, letter.offset) == ("test.events", 0, 1)
    assert letter.index in {-1, 0}
    assert letter.sha256 == hashlib.sha256(value or b"").digest()
    assert letter.append_time == START
    assert letter.sample is None
    assert feed.counts == {"applied": 2, "rejected": 1}


EVENTS: dict[str, tuple[object, str]] = {
    "unknown type": (call(type="tool_cal"), "unknown_type"),
    "no type": (call(type=None), "unknown_type"),
    "unknown version": (call(v=2), "unknown_version"),
    "no version": (call(v=None), "invalid"),
    "version as text": (call(v="1"), "unknown_version"),
    "no time": (call(time=None), "invalid"),
    "time as text": (call(time="1"), "invalid"),
    "negative time": (call(time=-1), "invalid"),
    "time beyond 2^53": (call(time=2**53), "invalid"),
    "no tool": (call(tool=None), "invalid"),
    "tool empty": (call(tool=""), "invalid"),
    "tool of 600": (call(tool="t" * 600), "invalid"),
    "run as number": (call(7), "invalid"),  # type: ignore[arg-type]
    "run too long": (call("r" * 129), "invalid"),
    "call id too long": (call(call_id="c" * 600), "invalid"),
    "seq negative": (call(seq=-1), "invalid"),
    "seq beyond 64 bits": (call(seq=2**63), "invalid"),
    "short digest": (call(args=b"short"), "invalid"),
    "digest as text": (call(args="00" * 32), "invalid"),
    "args as object": (raw_call({"path": "x"}), "invalid"),  # type: ignore[arg-type]
    "args as bytes": (raw_call(b"{}"), "invalid"),  # type: ignore[arg-type]
    "unknown disposition": (call(disposition="done"), "invalid"),
    "no event": ("text", "invalid"),
    "null event": (None, "invalid"),
    "nested event": (call(extra=nested(20)), "too_deep"),
    "fp of version 2": (call(fp={"v": 2, "documented": {"args": DIGEST}}), "unknown_version"),
    "no scope": (call(None), "no_scope"),
    "blank run and no session": (call(" \ufeff\t"), "no_scope"),
    "run that passes for a session": (call("\0s1"), "no_scope"),
    "no profile in the fingerprint": (call(fp={"v": 1}), "no_fingerprint"),
    "other profile only": (call(fp={"v": 1, "reference": {"args": DIGEST}}), "no_fingerprint"),
    "args no JSON": (raw_call("{"), "raw_undecodable"),
    "args NaN": (raw_call("NaN"), "raw_undecodable"),
    "args empty": (raw_call(""), "raw_undecodable"),
    "result no JSON": (raw_outcome(result="'"), "raw_undecodable"),
    "error no JSON": (raw_outcome(error="oops"), "raw_undecodable"),
    "nameless lost events": (started(type="events_lost"), "invalid"),
    "lost nothing": (started(type="events_lost", count=0), "invalid"),
    "pin of strangers' keys": (
        started(
            type="pin", config_offset=-1, commands_offset=-1, policy="", settings={"k" * 600: ""}
        ),
        "invalid",
    ),
}


@pytest.mark.parametrize("name", EVENTS)
def test_a_bad_event_costs_no_neighbour(name: str) -> None:
    event, code = EVENTS[name]
    value = bytes(msgpack.packb({"v": 1, "events": [GOOD, event, GOOD]}))
    feed = Feed().feed(value)
    (letter,) = feed.partition.dead_letters
    assert (letter.code.value, letter.offset, letter.index) == (code, 0, 1)
    assert feed.counts == {"applied": 2, "rejected": 1}
    assert feed.history("neighbour") == 2


@pytest.mark.parametrize("name", [n for n in EVENTS if isinstance(EVENTS[n][0], dict)])
def test_a_bad_event_alone_has_the_same_answer(name: str) -> None:
    event, code = EVENTS[name]
    assert isinstance(event, dict)
    assert Feed().feed(single(event)).codes == [code]


def test_what_strangers_sent_is_not_repeated() -> None:
    feed = Feed().feed(
        call("secret" * 30),
        call(tool=7, note="secret"),
        raw_call("secret"),
        started(type="secret"),
        started(type="pin", config_offset=0, commands_offset=0, policy="", settings={"secret": 1}),
        as_json(call(v="secret")),
        b"secret",
    )
    assert len(feed.codes) == 7
    assert "secret" not in "".join(letter.detail or "" for letter in feed.partition.dead_letters)


def test_samples_only_where_everything_may_be_captured() -> None:
    feed = Feed(samples=True).feed(b"\xc1" + b"x" * 5000)
    (letter,) = feed.partition.dead_letters
    assert letter.sample == (b"\xc1" + b"x" * 5000)[:1024]


def test_bytes_that_are_no_text_cost_only_their_event() -> None:
    events = [GOOD, call("r1", id="\ud800"), call("r1", note="\ud800"), GOOD]
    feed = Feed().feed(bad_utf8({"v": 1, "events": events}))
    assert feed.codes == ["invalid"]
    assert feed.partition.dead_letters[0].index == 1
    assert feed.counts["applied"] == 3


def test_the_header_decides_before_the_first_byte() -> None:
    feed = Feed()
    feed.feed(as_json(GOOD), headers=FRAME_HEADER)
    feed.feed(frame([GOOD]), headers=JSON_HEADER)
    assert feed.codes == ["undecodable", "undecodable"]
    feed.feed(as_json(GOOD), headers=(("content-type", b"Application/JSON; charset=utf-8"),))
    feed.feed(b" \n" + as_json(GOOD))
    feed.feed(frame([GOOD]), headers=(("other", b"application/json"),))
    assert feed.counts["applied"] == 3


def test_an_empty_frame_is_nothing() -> None:
    feed = Feed().feed(frame([]))
    assert feed.counts == {}
    assert feed.partition.last_offset == 0


# -- where it belongs, and whose it is ---------------------------------------------------------


def test_misrouted() -> None:
    here = partition_of("r1", 8)
    elsewhere = (here + 1) % 8
    feed = Feed(partitions=8, number=elsewhere).feed(frame([call("r1"), call("r1")]))
    assert feed.codes == ["misrouted", "misrouted"]
    assert feed.partition.live == {}
    assert Feed(partitions=8, number=here).feed(call("r1")).codes == []


def test_the_no_run_scope_is_the_sessions() -> None:
    feed = Feed().feed(call(None, session="s"), call(" ", session="s"), call("", session="s2"))
    assert set(feed.partition.live) == {"\0s", "\0s2"}
    assert feed.history("\0s") == 2


@pytest.mark.parametrize("session", ["s", "s" * 128])
def test_verdicts_of_a_session_without_run(session: str) -> None:
    feed = Feed().feed(call(None, session=session, disposition="gated"))
    ((scope, verdict),) = feed.partition.verdicts
    assert (scope, verdict.scope, verdict.run) == ("\0" + session, "\0" + session, None)
    feed.checkpoint()
    assert [found for found, _ in feed.partition.summaries()] == ["\0" + session]


@pytest.mark.parametrize("name", ["agent", "session", "runner"])
def test_a_changed_identity_is_refused(name: str) -> None:
    feed = Feed().feed(call(), call(**{name: "one"}), call(**{name: "two"}), call())
    assert feed.codes == ["identity_mismatch"]
    assert feed.partition.dead_letters[0].detail == name
    assert feed.history() == 3
    feed.checkpoint()
    feed.restart()
    feed.feed(call(**{name: "two"}))
    assert feed.codes == ["identity_mismatch"]


def test_a_resumed_run_may_have_another_runner_but_no_other_agent() -> None:
    feed = Feed().feed(call(runner="one", agent="a"))
    feed.feed(started(runner="two"))
    feed.feed(started(runner="two", agent="b", resumed=True))
    assert feed.codes == ["identity_mismatch", "identity_mismatch"]
    feed.feed(started(runner="two", agent="a", resumed=True), call(runner="two"))
    assert len(feed.codes) == 2
    feed.feed(call(runner="one"))
    assert feed.codes[2:] == ["identity_mismatch"]


# -- numbering -------------------------------------------------------------------------------


def test_duplicates_by_number() -> None:
    feed = Feed()
    for epoch, seq in [(0, 0), (0, 1), (0, 1), (0, 0), (1, 0), (0, 2), (1, 1)]:
        feed.feed(call(epoch=epoch, seq=seq))
    assert feed.counts == {"applied": 4, "duplicate": 3}
    assert feed.history() == 4


def test_a_number_without_epoch_is_of_epoch_zero() -> None:
    feed = Feed().feed(call(seq=3), call(epoch=0, seq=3), call(epoch=0, seq=4))
    assert feed.counts == {"applied": 2, "duplicate": 1}


def test_gaps_are_noted_and_cost_nothing() -> None:
    feed = Feed().feed(
        call(seq=0), call(seq=1), call(seq=5), call(epoch=2, seq=7), call(epoch=2, seq=9)
    )
    assert feed.counts == {"applied": 5, "gap": 2}
    assert feed.partition.live["r1"].totals.gaps == 2


def test_duplicates_by_id_within_the_last_64() -> None:
    feed = Feed().feed(*(call(id=f"e{n}") for n in range(65)))
    feed.feed(call(id="e64"), call(id="e1"), call(id="e0"))
    assert feed.counts == {"applied": 66, "duplicate": 2}
    feed.checkpoint()
    feed.restart()
    assert feed.feed(call(id="e64")).counts == {"duplicate": 1}


def test_events_without_id_or_with_an_empty_one_are_no_duplicates() -> None:
    feed = Feed().feed(call(), call(), call(id=""), call(id=""))
    assert feed.counts == {"applied": 4}
    ids = Feed(settings={"enabled": True}).feed(
        call(disposition="gated", id=""), call(disposition="gated", id="")
    )
    assert len({verdict.id for _, verdict in ids.partition.verdicts}) == 2


def test_a_refused_event_uses_up_neither_number_nor_id() -> None:
    feed = Feed().feed(call(seq=0, agent="a"), call(seq=1, agent="b"), call(seq=1, agent="a"))
    feed.feed(call("r2", id="x", fp={"v": 1}), call("r2", id="x"))
    assert feed.codes == ["identity_mismatch", "no_fingerprint"]
    assert feed.counts == {"applied": 3, "rejected": 2}


def test_losses_stay_countable() -> None:
    lost = {"v": 1, "type": "events_lost", "run": "r1", "time": 1, "count": 2**53 - 1}
    feed = Feed().feed(frame([lost] * 3000))
    feed.checkpoint()
    ((_, summary),) = feed.partition.summaries()
    assert summary["lost"] == 2**53 - 1


# -- raw values ------------------------------------------------------------------------------

ACCEPTED = {
    "lone surrogate": '{"a": "\\ud800"}',
    "surrogate key": '{"\\udfff": 1}',
    "integer beyond 64 bits": "1" + "0" * 30,
    "integer of 5,000 digits": "-" + "7" * 5_000,
    "integer of 350 digits": "7" * 350,
    "number beyond a double": "[1e999, -1e999]",
    "number below a double": "1e-999",
    "doubled key": '{"a": 1, "a": 2}',
    "depth 128": "[" * 128 + "]" * 128,
    "control characters": '"\\u0000\\u001f\\u007f"',
    "null": "null",
}


@pytest.mark.parametrize("name", ACCEPTED)
@pytest.mark.parametrize("profile", ["documented", "reference-2026-9"])
def test_odd_raw_values_are_taken(name: str, profile: Profile) -> None:
    text = ACCEPTED[name]
    feed = Feed(deployment=Deployment("test", profile=profile), settings={"enabled": True})
    feed.feed(raw_call(text), raw_outcome(args=text, result=text), raw_outcome(error=text))
    assert feed.codes == []
    assert feed.counts == {"applied": 3}
    assert feed.history() == 2


OVERSIZE = {
    "256 KiB and one": '"' + "x" * (256 * 1024 - 1) + '"',
    "depth 129": "[" * 129 + "]" * 129,
    "raw bomb": "[" * 100_000 + "]" * 100_000,
    "open bomb": "[" * 100_000,
    "open string of quotes": "[" * 129 + '"' + '\\"' * 100_000,
    "many bytes in few characters": '"' + "\u20ac" * (90 * 1024) + '"',
}


@pytest.mark.parametrize("name", OVERSIZE)
@pytest.mark.parametrize("profile", ["documented", "reference-2026-9"])
def test_raw_values_over_the_bounds_are_recorded_by_their_bytes(
    name: str, profile: Profile
) -> None:
    text = OVERSIZE[name]
    feed = Feed(deployment=Deployment("test", profile=profile), settings={"enabled": True})
    feed.feed(
        raw_call(text), raw_outcome(args=text, result=text), raw_outcome(args=text, error=text)
    )
    assert feed.codes == []
    assert feed.counts == {"applied": 3, "oversize": 3}
    first, second = feed.partition.live["r1"].history.records
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert first.call.signature == f"read:{digest}"
    assert (first.result, second.result) == (digest, f"error:{digest}")


def test_a_raw_value_at_the_bound_is_read() -> None:
    text = '"' + "x" * (256 * 1024 - 2) + '"'
    feed = Feed().feed(raw_call(text), as_json(raw_call(text)))
    assert feed.counts == {"applied": 2}


def test_a_loop_over_the_bounds_is_seen() -> None:
    text = json.dumps({"path": "x" * 300_000})
    feed = Feed(settings={"enabled": True})
    for _ in range(20):
        feed.feed(raw_call(text), raw_outcome(args=text, result=text))
    assert feed.said()[-1] == ("block", "generic_repeat", 20)


@pytest.mark.parametrize("name", ["Tool", "tool\0name", "\x1b[31m", "a\nb", "\u202egpj", "n" * 512])
def test_odd_tool_names_are_taken_literally(name: str) -> None:
    feed = Feed(settings={"enabled": True})
    for _ in range(10):
        feed.feed(call(tool=name), outcome(tool=name))
    feed.feed(call(tool=name))
    ((_, verdict),) = feed.partition.verdicts
    assert (verdict.action.value, verdict.count) == ("warn", 10)
    assert verdict.tool in {name, f"sha256:{hashlib.sha256(name.encode()).hexdigest()}"}


@pytest.mark.parametrize("length", [50, 128, 129, 512, 513, 5_000])
def test_unknown_tool_names_of_any_length(length: int) -> None:
    feed = Feed(settings={"enabled": True})
    error = json.dumps("Unknown tool: " + "a" * length)
    for _ in range(10):
        feed.feed(raw_call(), raw_outcome(error=error))
    assert feed.codes == []
    assert feed.said()[-1] == ("block", "unknown_tool_repeat", 10)


def test_a_fingerprint_that_contradicts_itself_is_one_outcome() -> None:
    """A veto has no result; under the documented profile there is no veto at all."""
    for profile, length in (("documented", 1), ("reference-2026-9", 1)):
        deployment = Deployment("test", profile=profile)  # type: ignore[arg-type]
        block = {"args": DIGEST, "result": RESULT, "kind": "tool-loop-veto", "unknown_tool": "x"}
        fp = {"v": 1, "documented": block, "reference": block}
        feed = Feed(deployment=deployment, settings={"enabled": True}).feed(outcome(fp=fp))
        assert feed.history() == length
        (record,) = feed.partition.live["r1"].history.records
        assert record.vetoed == (profile != "documented")
        assert (record.result is None) == record.vetoed


# -- tenant keys -----------------------------------------------------------------------------

KEY = TenantKey("k1", b"secret")
KEYED = Deployment("test", key_id="k1")


def test_raw_under_a_key_that_the_worker_does_not_hold() -> None:
    feed = Feed(deployment=KEYED).feed(raw_call(), raw_outcome(result="1"), call())
    assert feed.codes == ["raw_under_key", "raw_under_key"]


def test_raw_in_a_run_that_is_keyed_at_the_edge() -> None:
    keyed = call(fp={"v": 1, "key_id": "k1", "documented": {"args": DIGEST}})
    assert Feed().feed(keyed, raw_call()).codes == ["raw_under_key"]


def test_raw_with_the_key_equals_the_edge_with_the_key() -> None:
    feed = Feed(deployment=KEYED, key=KEY).feed(raw_call('{"a":1}'))
    signature = feed.partition.live["r1"].history.records[0].call.signature
    plain = Feed().feed(raw_call('{"a":1}'))
    assert signature != plain.partition.live["r1"].history.records[0].call.signature
    args = bytes.fromhex(signature.removeprefix("read:"))
    feed.feed(call(fp={"v": 1, "key_id": "k1", "documented": {"args": args}}))
    assert (feed.codes, feed.history()) == ([], 2)
    assert len(feed.partition.live["r1"].history.calls) == 1


def test_a_second_key_within_a_run_is_refused() -> None:
    def keyed(name: str | None) -> Fields:
        return call(
            fp={"v": 1, "documented": {"args": DIGEST}} | ({"key_id": name} if name else {})
        )

    feed = Feed().feed(keyed("k1"), keyed("k2"), keyed(None), keyed("k1"))
    assert feed.codes == ["key_mismatch", "key_mismatch"]
    assert Feed().feed(keyed(None), keyed("k1")).codes == ["key_mismatch"]


def test_the_keys_name_is_shown_but_never_the_secret() -> None:
    assert repr(KEY) == "TenantKey(id='k1')"
