"""Every signature that the shared vectors hold comes out the same."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loopstream.fingerprint.calls import fingerprint_call, signature
from loopstream.fingerprint.canonical import MISSING
from loopstream.fingerprint.outcomes import OutcomeKind, OutcomePrint, fingerprint_outcome
from loopstream.fingerprint.profiles import DOCUMENTED, REFERENCE

VECTORS = Path(__file__).resolve().parents[2] / ".." / "shared" / "vectors"
UNSHOWN_KINDS = (None, OutcomeKind.ORDINARY, OutcomeKind.ERROR)


def scenarios(name: str) -> Iterator[dict[str, Any]]:
    opener = gzip.open if name.endswith(".gz") else open
    with opener(VECTORS / name, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def fingerprint_step(step: dict[str, Any], profile: str) -> OutcomePrint:
    return fingerprint_outcome(
        step["tool"],
        step.get("args", MISSING),
        result=step.get("result", MISSING),
        error=step.get("error", MISSING),
        profile=profile,
    )


def computed(step: dict[str, Any], profile: str) -> tuple[object, ...]:
    if step["op"] == "call":
        call = fingerprint_call(step["tool"], step.get("args", MISSING))
        return (signature(step["tool"], call.args),)
    seen = fingerprint_step(step, profile)
    kind = None if seen.kind in UNSHOWN_KINDS else str(seen.kind)
    return seen.result, seen.unknown_tool, kind, seen.no_progress


def expected(step: dict[str, Any]) -> tuple[object, ...]:
    if step["op"] == "call":
        return (step["argsHash"],)
    return (
        step["resultHash"],
        step.get("unknownTool"),
        step.get("outcomeKind"),
        step.get("noProgress", False),
    )


@pytest.mark.parametrize(
    ("name", "profile", "calls", "outcomes"),
    [
        ("documented-directed.jsonl", DOCUMENTED, 3605, 3203),
        ("documented-random-public.jsonl.gz", DOCUMENTED, 40197, 38754),
        ("latest-directed.jsonl", REFERENCE, 2011, 1968),
    ],
)
def test_all_signatures_of_the_vectors_are_reproduced(
    name: str, profile: str, calls: int, outcomes: int
) -> None:
    checked: Counter[str] = Counter()
    mismatches = []
    for scenario in scenarios(name):
        for number, step in enumerate(scenario["steps"]):
            checked[step["op"]] += 1
            if step["op"] == "compaction":
                continue
            if computed(step, profile) != expected(step):
                mismatches.append((scenario["id"], number, computed(step, profile), expected(step)))
    assert mismatches[:5] == []
    assert (checked["call"], checked["outcome"]) == (calls, outcomes)


def test_an_outcome_carries_the_argument_digest_of_its_call() -> None:
    for scenario in scenarios("latest-directed.jsonl"):
        for step in scenario["steps"]:
            if step["op"] == "outcome":
                call = fingerprint_call(step["tool"], step["args"])
                assert fingerprint_step(step, REFERENCE)[:2] == call


@pytest.mark.parametrize(
    ("prefixes", "is_one_failure"),
    [
        (("032", "033", "034", "035", "036", "037", "038", "042", "048", "054", "056"), True),
        (("039", "040", "041", "043", "055"), False),
    ],
)
def test_failures_of_the_vectors_are_one_exactly_if_they_count_as_one(
    prefixes: tuple[str, ...], is_one_failure: bool
) -> None:
    wanted = {f"new-{prefix}-execfail" for prefix in prefixes}
    met = set()
    for scenario in scenarios("latest-directed.jsonl"):
        if scenario["id"] in wanted:
            met.add(scenario["id"])
            outcomes = [step for step in scenario["steps"] if step["op"] == "outcome"]
            failures = {fingerprint_step(step, REFERENCE).failure for step in outcomes}
            assert None not in failures
            assert (len(failures) == 1) is is_one_failure, scenario["about"]
    assert met == wanted
