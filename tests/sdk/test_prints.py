import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopstream.events.tool import CallFingerprint, OutcomeFingerprint
from loopstream.fingerprint.calls import fingerprint_call
from loopstream.fingerprint.canonical import MISSING
from loopstream.fingerprint.digests import call_digests, outcome_digests
from loopstream.fingerprint.outcomes import fingerprint_outcome
from loopstream.fingerprint.profiles import DOCUMENTED, REFERENCE
from loopstream.sdk.decisions import blocked_result
from loopstream.sdk.prints import Printer
from loopstream.sdk.values import NOTHING, to_json
from loopstream.wire.limits import MAX_RAW_BYTES

BOTH = Printer((DOCUMENTED, REFERENCE), key=b"k" * 16, key_id="k1")
PLAIN = Printer((DOCUMENTED,))

tools = st.sampled_from(["exec", "process", "command_status", "message", "write", "read"])
arguments = st.sampled_from(
    [MISSING, None, {}, {"action": "poll"}, {"action": "send", "to": "x"}, {"command": "ls"}]
)
results = st.sampled_from(
    [
        MISSING,
        None,
        "text",
        blocked_result("no"),
        {"details": {"status": "failed", "exitCode": 2, "aggregated": "boom at 12:00:01"}},
        {"details": {"changed": False}, "content": [{"type": "text", "text": "same"}]},
    ]
)
errors = st.sampled_from([MISSING, None, "boom", "Unknown tool: frobnicate", 7])


@given(tools, arguments)
def test_calls_look_as_the_models_say(tool: str, args: object) -> None:
    asked, fields = BOTH.call(tool, to_json(args))
    expected = call_digests(fingerprint_call(tool, args, BOTH.key))
    read = CallFingerprint.model_validate(fields)
    assert read.key_id == "k1"
    assert read.documented == read.reference == expected
    assert (asked.args, asked.poll) == (expected.args, expected.poll)


@given(tools, arguments, results, errors)
def test_outcomes_look_as_the_models_say(
    tool: str, args: object, result: object, error: object
) -> None:
    asked, _ = BOTH.call(tool, to_json(args))
    fields = BOTH.outcome(tool, asked, to_json(result), to_json(error))
    read = OutcomeFingerprint.model_validate(fields)
    for profile, block in ((DOCUMENTED, read.documented), (REFERENCE, read.reference)):
        assert block == outcome_digests(
            fingerprint_outcome(
                tool, args, result=result, error=error, profile=profile, key=BOTH.key
            )
        )


def test_only_the_profiles_asked_for_are_made() -> None:
    _, fields = PLAIN.call("exec", to_json({}))
    assert fields.keys() == {"v", "documented"}


LARGE = {"action": "poll", "text": "x" * MAX_RAW_BYTES}


def sha256(value: object) -> bytes:
    return hashlib.sha256(json.dumps(value, separators=(",", ":")).encode()).digest()


def test_oversize_values_count_by_all_their_bytes() -> None:
    large = to_json(LARGE)
    asked, fields = PLAIN.call("process", large)
    assert asked.args == sha256(LARGE)
    assert fields["documented"] == {"args": asked.args, "poll": True}
    outcome = PLAIN.outcome("process", asked, result=large)["documented"]
    assert outcome == {"args": asked.args, "poll": True, "result": asked.args}


@pytest.mark.parametrize("profile", [DOCUMENTED, REFERENCE])
def test_an_oversize_error_is_an_error(profile: str) -> None:
    printer = Printer((profile,))
    asked, _ = printer.call("exec", NOTHING)
    fields = printer.outcome("exec", asked, error=to_json("x" * MAX_RAW_BYTES))
    block = fields["documented" if profile == DOCUMENTED else "reference"]
    assert block["failed"] is True
    assert block.get("no_progress", False) is (profile == REFERENCE)


def test_what_a_tool_does_to_its_arguments_does_not_show() -> None:
    args = {"action": "poll", "session": "s"}
    asked, _ = PLAIN.call("process", to_json(args))
    before = PLAIN.outcome("process", asked, result=to_json({"details": {"status": "running"}}))
    args.clear()
    after = PLAIN.outcome("process", asked, result=to_json({"details": {"status": "running"}}))
    assert before == after


def test_content_in_a_tuple_counts_as_in_a_list() -> None:
    asked, _ = PLAIN.call("read", NOTHING)
    texts = [({"type": "text", "text": text},) for text in ("a", "b")]
    prints = [PLAIN.outcome("read", asked, to_json({"content": text})) for text in texts]
    as_list = PLAIN.outcome("read", asked, to_json({"content": list(texts[0])}))
    assert prints[0] == as_list != prints[1]
