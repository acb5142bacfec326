"""Which parts of an outcome count, by the kind of tool."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from loopstream.errors import SettingsError
from loopstream.fingerprint.calls import fingerprint_call, signature
from loopstream.fingerprint.canonical import MISSING, canonical
from loopstream.fingerprint.outcomes import (
    OutcomeKind,
    OutcomePrint,
    fingerprint_outcome,
)
from loopstream.fingerprint.profiles import DOCUMENTED, REFERENCE

PROFILES = [DOCUMENTED, REFERENCE]
VETO = {"details": {"status": "blocked", "deniedReason": "tool-loop", "reason": "again"}}
profiles = pytest.mark.parametrize("profile", PROFILES)


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def outcome(tool: str, args: object, details: object, text: str = "", **more: Any) -> OutcomePrint:
    result = {"content": [{"type": "text", "text": text}], "details": details}
    return fingerprint_outcome(tool, args, result=result, **more)


def same(tool: str, args: object, one: object, two: object, **more: Any) -> bool:
    return outcome(tool, args, one, **more).result == outcome(tool, args, two, **more).result


@pytest.mark.parametrize(
    ("tool", "args", "is_poll"),
    [
        ("command_status", MISSING, True),
        ("command_status", [1], True),
        ("process", {"action": "poll"}, True),
        ("process", {"action": "log", "id": 1}, True),
        ("process", {"action": "Poll"}, False),
        ("process", {"action": ["poll"]}, False),
        ("process", {"action": "kill"}, False),
        ("process", {}, False),
        ("process", "poll", False),
        ("process", MISSING, False),
        ("Process", {"action": "poll"}, False),
        ("exec", {"action": "poll"}, False),
    ],
)
def test_polls_are_told_by_tool_and_action(tool: str, args: object, is_poll: bool) -> None:
    assert fingerprint_call(tool, args).poll is is_poll
    assert fingerprint_outcome(tool, args, result=1).poll is is_poll


def test_a_signature_is_the_tool_and_the_digest_of_the_whole_arguments() -> None:
    call = fingerprint_call("exec", {"b": 1.0, "a": "x"})
    assert signature("exec", call.args) == "exec:" + sha('{"a":"x","b":1}')
    assert fingerprint_call("exec", MISSING).args.hex() == sha("undefined")
    assert fingerprint_call("exec", None).args.hex() == sha("null")


@profiles
def test_without_result_and_error_nothing_is_recorded(profile: str) -> None:
    seen = fingerprint_outcome("read", {}, profile=profile)
    assert seen == OutcomePrint(*fingerprint_call("read", {}))


@profiles
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (" e ", " e "),
        ("", ""),
        (7, "7"),
        (7.0, "7"),
        (-0.0, "0"),
        (float("inf"), "Infinity"),
        (True, "true"),
        (None, "null"),
        ([1, "a"], '[1,"a"]'),
        ({"b": 1, "a": None}, '{"a":null,"b":1}'),
    ],
)
def test_an_error_is_hashed_by_its_text(error: object, text: str, profile: str) -> None:
    seen = fingerprint_outcome("read", {}, error=error, result={"details": {}}, profile=profile)
    assert seen.result == "error:" + sha(canonical(text))
    assert seen.no_progress is (profile == REFERENCE)
    assert seen.kind is (OutcomeKind.ERROR if profile == REFERENCE else None)


@profiles
@pytest.mark.parametrize("result", [None, True, 3, 2.5, "text", [], [{"details": 1}]])
def test_a_result_that_is_no_object_is_hashed_whole(result: object, profile: str) -> None:
    seen = fingerprint_outcome("exec", {}, result=result, profile=profile)
    assert seen.result == sha(canonical(result))
    assert seen.kind is (OutcomeKind.ORDINARY if profile == REFERENCE else None)


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({}, '{"details":{},"text":""}'),
        ({"details": [1], "content": {"text": "x"}}, '{"details":{},"text":""}'),
        ({"details": None, "more": 1, "content": "x"}, '{"details":{},"text":""}'),
        (
            {
                "content": [
                    {"type": "text", "text": "\ufeff a"},
                    {"type": "image", "text": "b"},
                    {"type": "", "text": ""},
                    {"type": 1, "text": "no"},
                    {"text": "no"},
                    {"type": "text", "text": 5},
                    {"type": "text"},
                    "no",
                    None,
                    {"type": "text", "text": "c\x85\n"},
                ],
                "details": {"k": 1e0},
            },
            '{"details":{"k":1},"text":"a\\nb\\n\\nc\x85"}',
        ),
    ],
)
def test_details_and_text_are_what_counts_of_a_result(result: object, text: str) -> None:
    assert fingerprint_outcome("read", {}, result=result).result == sha(text)


@pytest.mark.parametrize("tool", ["read", "exec", "write", "process", "sessions_send"])
def test_a_refusal_as_a_loop_is_recorded_by_the_reference_alone(tool: str) -> None:
    pending = fingerprint_outcome(tool, {}, result=VETO)
    assert (pending.result, pending.kind) == (None, None)
    veto = fingerprint_outcome(tool, {}, result=VETO, profile=REFERENCE)
    assert (veto.result, veto.kind, veto.no_progress) == (None, OutcomeKind.VETO, False)


@profiles
@pytest.mark.parametrize(
    "details", [{"status": "blocked"}, {"status": "blocked", "deniedReason": "policy"}]
)
def test_any_other_refusal_is_an_ordinary_outcome(details: object, profile: str) -> None:
    assert outcome("read", {}, details, profile=profile).result is not None


@profiles
@pytest.mark.parametrize(
    ("details", "counted"),
    [
        (
            {"status": "running", "tail": " x ", "pid": 1},
            '{"status":"running","tail":" x "}',
        ),
        ({"status": "running", "tail": 1}, '{"status":"running","tail":""}'),
        (
            {"status": "completed", "exitCode": 0, "timedOut": 1, "aggregated": " o ", "pid": 1},
            '{"exitCode":0,"output":"o","status":"completed","timedOut":false}',
        ),
        (
            {"status": "failed", "exitCode": True, "timedOut": True, "aggregated": "\ufeff"},
            '{"exitCode":null,"output":"said","status":"failed","timedOut":true}',
        ),
        (
            {"status": "approval-pending", "reason": 1, "host": "h", "command": "c", "id": 5},
            '{"command":"c","host":"h","reason":null,"status":"approval-pending","warningText":""}',
        ),
        (
            {"status": "approval-unavailable", "reason": "r", "warningText": "w", "command": None},
            '{"command":"","host":null,"reason":"r","status":"approval-unavailable","warningText":"w"}',
        ),
        ({"status": "odd", "pid": 1}, '{"details":{"pid":1,"status":"odd"},"text":"said"}'),
        ({"status": ["running"]}, '{"details":{"status":["running"]},"text":"said"}'),
        ({}, '{"details":{},"text":"said"}'),
    ],
)
def test_exec_counts_by_status(details: object, counted: str, profile: str) -> None:
    assert outcome("exec", {}, details, " said ", profile=profile).result == sha(counted)


@profiles
@pytest.mark.parametrize(
    ("args", "details", "counted"),
    [
        (
            {"action": "poll"},
            {"status": None, "exitCode": "1", "aggregated": " a ", "pid": 1},
            (
                '{"action":"poll","aggregated":" a ","exitCode":"1","exitSignal":null,'
                '"status":null,"text":"said"}'
            ),
        ),
        (
            {"action": "poll", "id": 3},
            {"exitSignal": "TERM"},
            (
                '{"action":"poll","aggregated":null,"exitCode":null,"exitSignal":"TERM",'
                '"status":undefined,"text":"said"}'
            ),
        ),
        (
            {"action": "log"},
            {"totalLines": 3, "truncated": False, "aggregated": "x"},
            (
                '{"action":"log","exitCode":null,"exitSignal":null,"status":undefined,"text":"said",'
                '"totalChars":null,"totalLines":3,"truncated":false}'
            ),
        ),
        ({"action": "kill"}, {"a": 1}, '{"details":{"a":1},"text":"said"}'),
        ({"action": ["log"]}, {"a": 1}, '{"details":{"a":1},"text":"said"}'),
        ("poll", {"a": 1}, '{"details":{"a":1},"text":"said"}'),
    ],
)
def test_process_counts_by_action(
    args: object, details: object, counted: str, profile: str
) -> None:
    assert outcome("process", args, details, " said ", profile=profile).result == sha(counted)


def test_command_status_is_hashed_whole() -> None:
    assert not same("command_status", {}, {"pid": 1}, {"pid": 2})


@pytest.mark.parametrize(
    ("tool", "args", "is_send_in"),
    [
        ("sessions_send", MISSING, PROFILES),
        ("message", {"action": "send"}, PROFILES),
        ("message", {"action": "sendWithEffect"}, PROFILES),
        ("message", {"action": "poll"}, PROFILES),
        ("conversations_send", "any", [REFERENCE]),
        ("conversations_turn", {}, [REFERENCE]),
        ("message", {"action": "Send"}, []),
        ("message", {"action": ["send"]}, []),
        ("message", {"action": "read"}, []),
        ("message", ["send"], []),
        ("send", {"action": "send"}, []),
    ],
)
def test_sends_are_told_by_tool_and_action(tool: str, args: object, is_send_in: list[str]) -> None:
    for profile in PROFILES:
        is_send = same(tool, args, {"messageId": 1}, {"messageId": 2}, profile=profile)
        assert is_send is (profile in is_send_in)


VOLATILE = [
    "messageId",
    "message_id",
    "messageIds",
    "platformMessageId",
    "platformMessageIds",
    "fileId",
    "file_id",
    "fileKey",
    "pollId",
    "poll_id",
    "receipt",
    "runId",
    "idempotencyKey",
    "ts",
    "timestamp",
    "sentAt",
    "deliveredAt",
    "createdAt",
]
stable_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "id", "to", "text"]), inner, max_size=3)
    ),
    max_leaves=10,
)
stable_details = st.dictionaries(st.sampled_from(["a", "b", "chat"]), stable_values, max_size=3)
noise = st.dictionaries(st.sampled_from(VOLATILE), stable_values, max_size=4)


def noisy(value: object, draw: Any) -> object:
    if isinstance(value, dict):
        return {**draw(noise), **{key: noisy(item, draw) for key, item in value.items()}}
    if isinstance(value, list):
        return [noisy(item, draw) for item in value]
    return value


@given(stable_details, st.data())
def test_sends_that_differ_in_volatile_fields_are_equal(details: object, data: Any) -> None:
    one, two = noisy(details, data.draw), noisy(details, data.draw)
    assert same("sessions_send", {}, one, two)
    assert same("sessions_send", {}, one, details)
    assert same("conversations_send", {}, one, two, profile=REFERENCE)


@given(stable_details, stable_details)
def test_sends_that_differ_otherwise_differ(one: object, two: object) -> None:
    assume(canonical(one) != canonical(two))
    assert not same("sessions_send", {}, one, two)


@pytest.mark.parametrize("name", VOLATILE)
def test_each_volatile_field_is_dropped_whatever_its_value(name: str) -> None:
    assert same("sessions_send", {}, {"a": [{name: {"x": 1}}]}, {"a": [{}]})
    assert not same("read", {}, {name: 1}, {name: 2})


@pytest.mark.parametrize(
    ("message", "is_delivered"),
    [
        ({"text": "t", "direction": "out"}, True),
        ({"text": "t", "senderId": "s"}, True),
        ({"text": "t", "accountId": ""}, True),
        ({"text": "t", "conversation": {}}, True),
        ({"text": "t", "conversation": []}, False),
        ({"text": "t", "senderId": 5}, False),
        ({"text": 1, "senderId": "s"}, False),
        ({"senderId": "s"}, False),
        ({"text": "t"}, False),
    ],
)
def test_the_id_goes_only_from_a_delivered_message(message: Any, is_delivered: bool) -> None:
    one, two = {"m": [{"id": "1", **message}]}, {"m": [{"id": "2", **message}]}
    assert same("sessions_send", {}, one, two) is is_delivered
    numbered = {"m": [{"id": 1, **message}]}, {"m": [{"id": 2, **message}]}
    assert not same("sessions_send", {}, *numbered)


def test_the_text_of_a_send_does_not_count() -> None:
    args = {"action": "send"}
    assert outcome("message", args, {"a": 1}, "x").result == sha('{"a":1}')


def test_writes_that_change_nothing_are_one_outcome_of_the_reference() -> None:
    seen = outcome("write", {"path": "a"}, {"changed": False, "n": 1}, "x", profile=REFERENCE)
    assert (seen.result, seen.no_progress) == (sha('{"status":"unchanged"}'), True)
    assert seen.kind is OutcomeKind.ORDINARY
    for tool, details in [("write", {"changed": 0}), ("write", {}), ("edit", {"changed": False})]:
        assert not outcome(tool, {}, details, profile=REFERENCE).no_progress
    assert not same("write", {}, {"changed": False, "n": 1}, {"changed": False, "n": 2})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)
FAILURE = {"details": {"status": "failed", "exitCode": 1, "aggregated": "e"}}


@given(json_values, json_values, st.binary(min_size=1, max_size=64))
def test_a_tenants_key_changes_every_digest_and_no_equality(
    args: object, value: object, key: bytes
) -> None:
    for given_outcome in ({"result": value}, {"error": value}, {"result": FAILURE}):
        more: dict[str, Any] = {**given_outcome, "profile": REFERENCE}
        bare = fingerprint_outcome("exec", args, **more)
        keyed = fingerprint_outcome("exec", args, key=key, **more)
        assert keyed == fingerprint_outcome("exec", args, key=key, **more)
        assert keyed.args != bare.args
        assert keyed.args == fingerprint_call("exec", args, key).args
        assert keyed.result != bare.result or bare.result is None
        assert (keyed.failure is None) is (bare.failure is None)
        assert keyed.failure != bare.failure or bare.failure is None
        assert keyed[3:7] == bare[3:7]


@given(json_values, json_values, st.booleans())
def test_outcomes_of_any_shape_have_a_fingerprint(args: object, value: object, wrap: bool) -> None:
    result = {"content": value, "details": value} if wrap else value
    for tool in ("exec", "process", "message", "sessions_send", "write", "read"):
        for profile in PROFILES:
            seen = fingerprint_outcome(tool, args, result=result, profile=profile)
            assert seen.digest is not None
            assert len(seen.digest) == 32


def test_an_unknown_profile_is_refused_with_the_known_ones_named() -> None:
    with pytest.raises(SettingsError, match=r"documented or reference-2026-9"):
        fingerprint_outcome("read", {}, result=1, profile="latest")
