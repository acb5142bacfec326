import json
from typing import Any

import pytest

from loopstream.events import ToolCall, ToolOutcome
from loopstream.sdk.capture import mask_secrets, visible
from loopstream.sdk.values import NOTHING, to_json
from loopstream.wire.limits import MAX_RAW_BYTES

from .fakes import Bench

ARGS = {"command": "ls", "api_key": "hunter2", "nested": [{"Authorization": "hunter2"}]}


def shown(capture: str, **options: Any) -> tuple[ToolCall, ToolOutcome, Bench]:
    bench = Bench(capture=capture, **options)
    session = bench.begin()
    decision = session.ask("exec", ARGS, None, None, None)
    session.report(decision, result={"token": "hunter2", "text": "x" * 600})
    _, call, outcome = bench.sent()
    assert isinstance(call, ToolCall)
    assert isinstance(outcome, ToolOutcome)
    return call, outcome, bench


def test_digests_alone_leave_nothing_to_see() -> None:
    call, outcome, _ = shown("digests")
    assert (call.args, call.preview) == (None, None)
    assert (outcome.args, outcome.result, outcome.preview) == (None, None, None)


def test_a_preview_is_short_and_redacted() -> None:
    call, outcome, _ = shown("preview")
    assert call.args is None
    assert call.preview == json.dumps(
        {"command": "ls", "api_key": "***", "nested": [{"Authorization": "***"}]},
        separators=(",", ":"),
    )
    assert outcome.result is None
    assert outcome.preview is not None
    assert len(outcome.preview) == 512
    assert "hunter2" not in outcome.preview


def test_full_values_are_redacted_and_fingerprints_are_not() -> None:
    call, outcome, _ = shown("full")
    assert "hunter2" not in f"{call.args}{outcome.args}{outcome.result}"
    assert json.loads(call.args or "")["command"] == "ls"
    assert json.loads(outcome.result or "")["text"] == "x" * 600
    assert call.fp == shown("digests")[0].fp
    assert outcome.fp == shown("digests")[1].fp


def test_an_error_travels_as_an_error() -> None:
    bench = Bench(capture="full")
    session = bench.begin()
    decision = session.ask("exec", {}, None, None, None)
    session.report(decision, result=1, error="boom")
    *_, outcome = bench.sent()
    assert isinstance(outcome, ToolOutcome)
    assert (outcome.error, outcome.result) == ('"boom"', None)


def test_redaction_can_be_replaced_or_turned_off() -> None:
    call, *_ = shown("full", redact=None)
    assert "hunter2" in (call.args or "")
    call, outcome, _ = shown("full", redact=lambda *given: list(given[:2]))
    assert (call.args, outcome.result) == ('["exec","args"]', '["exec","result"]')


def test_a_hook_may_spoil_its_copy_only() -> None:
    def spoil(tool: str, part: str, value: Any) -> Any:
        value.clear()
        return value

    before = json.dumps(ARGS)
    call, *_ = shown("full", redact=spoil)
    assert call.args == "{}"
    assert json.dumps(ARGS) == before


def test_a_hook_that_fails_lets_nothing_out() -> None:
    def fail(tool: str, part: str, value: Any) -> Any:
        raise RuntimeError(value)

    call, outcome, bench = shown("full", redact=fail)
    assert (call.args, outcome.args, outcome.result) == (None, None, None)
    assert call.fp is not None
    assert bench.hub.counters.view()["errors"] == 2


@pytest.mark.parametrize("name", ["password", "PASSWD", "client_secret", "x-api-key", "cookie"])
def test_names_that_sound_like_secrets_are_masked(name: str) -> None:
    assert mask_secrets("t", "args", {name: {"a": 1}}) == {name: "***"}
    assert mask_secrets("t", "args", {"keyboard": 1}) == {"keyboard": 1}


def test_surrogates_travel_as_escapes() -> None:
    assert visible(None, "t", "args", to_json(["\ud800", "é"])) == '["\\ud800","\\u00e9"]'
    assert visible(None, "t", "args", to_json("é")) == '"é"'


def test_what_is_missing_or_too_large_is_not_shown() -> None:
    assert visible(mask_secrets, "t", "args", NOTHING) is None
    assert visible(None, "t", "args", to_json("x" * MAX_RAW_BYTES)) is None
    # A hook that blows a value up does not get it past the bound.
    grown = visible(lambda *_: "x" * MAX_RAW_BYTES, "t", "args", to_json("small"))
    assert grown is None
