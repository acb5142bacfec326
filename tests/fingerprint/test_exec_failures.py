"""Typed exec failures of the reference profile: what is one, and which are the same."""

from __future__ import annotations

from typing import Any

import pytest

from loopstream.fingerprint.failures import mask
from loopstream.fingerprint.outcomes import OutcomeKind, OutcomePrint, fingerprint_outcome


def run(output: object, *, profile: str = "reference-2026-9", **details: Any) -> OutcomePrint:
    result = {"details": {"status": "failed", "exitCode": 1, "aggregated": output, **details}}
    return fingerprint_outcome("exec", {"command": "make"}, result=result, profile=profile)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("at 2026-01-02T03:04:05Z!", "at #!"),
        ("at 2026-01-02t03:04:05z", "at #"),
        ("2026-01-02 03:04:05.123456+02:00", "#"),
        ("x2026-01-02T03:04:05-0330y", "x#y"),
        ("2026-01-02T03:04:05.1234567Z", "#7Z"),
        ("2026-01-02  03:04:05", "2026-01-02  #"),
        ("2026-01-02", "2026-01-02"),
        ("[3:04:05] v13:04:05.25x 103:04:05", "[#] v#x 1#"),
        ("3:04", "3:04"),
        ("attempt 3 of 5, Attempt#4, RETRY: = 7, retry9", "# of 5, #, #, retry9"),
        ("attempt3 attempts 3 reattempt 3", "attempt3 attempts 3 reattempt 3"),
        ("attempt\t3", "attempt\t3"),
        ("took 5ms, 0.5 s, 12 US, 1 second, 2 Hours, 3minutes", "took #, #, #, #, #, #"),
        ("5  ms 5msx x5ms 5 m 5\u00b5s", "5  ms 5msx x5ms 5 m 5\u00b5s"),
        ("1.2.3s", "1.#"),
        ("pid 7 PPID=8 pid:#9 pid5 xpid 6 pids 4", "# # # pid5 xpid 6 pids 4"),
        ("attempt 2026-01-02T03:04:05Z 5", "#"),
        ("line 12 exit 3", "line 12 exit 3"),
        ("attempt \u0663, \u0663 s", "attempt \u0663, \u0663 s"),
        ("5 \u017f, 5 m\u017f", "5 \u017f, 5 m\u017f"),
    ],
)
def test_volatile_bits_are_masked_and_nothing_else(text: str, masked: str) -> None:
    assert mask(text) == masked


@pytest.mark.parametrize(
    "text", ["1" * 200_000, "1." * 100_000, "attempt " * 30_000, "1:" * 100_000]
)
def test_a_long_output_is_masked_in_passing(text: str) -> None:
    # A search that is quadratic in the text's length would run into the test's time limit.
    assert mask(text) == text


@pytest.mark.parametrize(
    "details",
    [
        {"exitCode": 0},
        {"exitCode": -0.0},
        {"exitCode": None},
        {"exitCode": "1"},
        {"exitCode": True},
        {"exitCode": float("inf")},
        {"exitCode": 10**400},
        {"timedOut": True},
        {"status": "running"},
        {"status": "approval-pending"},
        {"status": "odd"},
        {"aggregated": " \n"},
        {"aggregated": None},
        {"aggregated": "\n\n(Command exited with code 1)"},
        {"exitCode": 127.0, "aggregated": "(Command exited with code 127)"},
    ],
)
def test_an_outcome_without_code_or_cause_is_ordinary(details: dict[str, Any]) -> None:
    seen = run(**{"output": "e", **details})
    assert (seen.kind, seen.failure) == (OutcomeKind.ORDINARY, None)
    assert seen.result is not None
    assert not seen.no_progress


@pytest.mark.parametrize(
    "details",
    [
        {},
        {"status": "completed"},
        {"exitCode": -1},
        {"exitCode": 0.5},
        {"timedOut": "true"},
        {"aggregated": "(Command exited with code 2)"},
        {"aggregated": "e\n\n(Command exited with code 1)"},
    ],
)
def test_a_code_and_a_cause_make_a_typed_failure(details: dict[str, Any]) -> None:
    seen = run(**{"output": "e", **details})
    assert seen.kind is OutcomeKind.TERMINAL_EXEC_FAILURE
    assert seen.failure is not None
    assert len(seen.failure) == 32
    assert not seen.no_progress


def test_the_identity_ignores_volatile_bits_where_the_result_does_not() -> None:
    first, second = run("attempt 1: e"), run("attempt 2: e")
    assert first.failure == second.failure
    assert first.result != second.result


def test_status_code_and_cause_are_part_of_the_identity() -> None:
    variants = [run("e"), run("f"), run("e", exitCode=2), run("e", status="completed")]
    assert len({variant.failure for variant in variants}) == len(variants)


def test_text_stands_in_for_a_missing_output() -> None:
    details = {"status": "failed", "exitCode": 1}
    result = {"content": [{"type": "text", "text": " e "}], "details": details}
    seen = fingerprint_outcome("exec", {}, result=result, profile="reference-2026-9")
    assert seen.failure == run("e").failure


def test_other_tools_and_the_documented_profile_have_no_typed_failures() -> None:
    assert run("e", profile="documented")[5:] == (None, False, None)
    result = {"details": {"status": "failed", "exitCode": 1, "aggregated": "e"}}
    seen = fingerprint_outcome("shell", {}, result=result, profile="reference-2026-9")
    assert seen.kind is OutcomeKind.ORDINARY
