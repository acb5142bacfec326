"""The runner's fingerprints, and the worker's own of raw events, are the same; only digests go."""

from __future__ import annotations

import json
from typing import Any

import pytest

from loopstream.events import CallFingerprint, OutcomeFingerprint, ToolCall, ToolOutcome
from loopstream.partition.raw import fingerprint_raw_call, fingerprint_raw_outcome
from loopstream.sdk.prints import Printer
from loopstream.sdk.values import NOTHING, to_json

CASES: list[tuple[str, Any, dict[str, Any]]] = [
    ("read", {"path": "secret/place.txt"}, {"result": "very private text"}),
    ("exec", {"command": "cat private.txt # 12:00:01"}, {"result": {"details": {"exitCode": 2}}}),
    (
        "message",
        {"action": "send", "to": "someone", "text": "private words"},
        {"error": "HTTP 403"},
    ),
    ("t", '{"a": "private"}', {"result": {"details": {"messageId": "m1"}}}),
    ("big", {"text": "x" * 300_000}, {"result": "y" * 300_000}),
]


@pytest.mark.parametrize(("tool", "args", "came"), CASES, ids=[case[0] for case in CASES])
def test_raw_and_edge_agree(tool: str, args: Any, came: dict[str, Any]) -> None:
    printer = Printer(("extended",))
    asked, call_fields = printer.call(tool, to_json(args))
    result = to_json(came["result"]) if "result" in came else NOTHING
    error = to_json(came["error"]) if "error" in came else NOTHING
    outcome_fields = printer.outcome(tool, asked, result, error)
    base: dict[str, Any] = {"v": 1, "run": "r", "time": 0, "tool": tool}
    texts: dict[str, Any] = {
        name: json.dumps(value, separators=(",", ":")) for name, value in came.items()
    }
    raw_args = json.dumps(args, separators=(",", ":"))
    call = ToolCall(**base, type="tool_call", args=raw_args)
    outcome = ToolOutcome(**base, type="tool_outcome", args=raw_args, **texts)
    made = fingerprint_raw_call(call, "extended", None, None).fp
    assert made is not None
    seen = CallFingerprint.model_validate(call_fields)
    assert made == seen
    made_outcome = fingerprint_raw_outcome(outcome, "extended", None, None).fp
    assert made_outcome == OutcomeFingerprint.model_validate(outcome_fields)
    assert seen.extended is not None
    assert asked.signed == (seen.extended.masked or seen.extended.args)


def test_only_digests_leave_the_runner() -> None:
    printer = Printer(("extended",), b"k" * 32, "k1")
    for tool, args, came in CASES[:4]:
        asked, fields = printer.call(tool, to_json(args))
        outcome = printer.outcome(tool, asked, *(to_json(came[n]) if n in came else NOTHING
                                                 for n in ("result", "error")))  # fmt: skip
        shown = repr(fields) + repr(outcome)
        for word in ("secret", "private", "place", "someone", "403", "m1"):
            assert word not in shown.replace("permission", "")
