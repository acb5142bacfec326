"""Live verdicts of a session with several runs equal conformance on each run's own steps."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

import pytest

from loopstream.events import Verdict
from loopstream.events.text import trim
from loopstream.partition import Partition
from loopstream.policy.deployment import Deployment, Profile
from loopstream.policy.settings import refuse, resolve, resolve_reference
from loopstream.testing import Played, SessionDriver
from tests.conftest import SHARED
from tests.partition.driver import Feed, Fields

pytestmark = pytest.mark.slow

VECTORS = SHARED / "vectors"
SESSION = "the session"
Case = dict[str, Any]


def cases(name: str, limit: int) -> list[Case]:
    """Scenarios of several runs; those of one run two by two, their steps by turns."""
    every = [case for case in _read(name) if refuse(case.get("config") or {}) is None]
    several = [case for case in every if len(_scopes(case)) > 1]
    return [*several, *_paired([case for case in every if len(_scopes(case)) == 1])][:limit]


def _read(name: str) -> list[Case]:
    path = VECTORS / name
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _scopes(case: Case) -> set[str]:
    return {scope_of(step) for step in case["steps"]}


def _paired(alone: list[Case]) -> Iterator[Case]:
    kinds: dict[str, Case] = {}
    for case in alone:
        kind = json.dumps([case.get("config"), case.get("onCritical")])
        partner = kinds.pop(kind, None)
        if partner is None:
            kinds[kind] = case
            continue
        turns = zip_longest(_as_run("one", partner), _as_run("two", case))
        steps = [step for pair in turns for step in pair if step is not None]
        yield case | {"id": f"{partner['id']} and {case['id']}", "steps": steps}


def _as_run(run: str, case: Case) -> list[Case]:
    return [step | {"run": run} for step in case["steps"]]


def scope_of(step: Case) -> str:
    return trim(step.get("run") or "") or f"\0{SESSION}"


def text_of(value: object) -> str:
    """JSON text, with numbers over the range spelled as a runner would have had them."""
    return json.dumps(value).replace("Infinity", "1e999")


def event_of(step: Case, number: int, *, veto: bool) -> Fields:
    base: Fields = {"v": 1, "id": f"e{number}", "session": SESSION, "time": number}
    if step.get("run") is not None:
        base["run"] = step["run"]
    if step["op"] == "compaction":
        return base | {"type": "compaction", "retried": True}
    base["tool"] = step["tool"]
    if step.get("callId") is not None:
        base["call_id"] = step["callId"]
    base |= {name: text_of(step[name]) for name in ("args", "result", "error") if name in step}
    if step["op"] == "call":
        return base | {"type": "tool_call", "disposition": "gated" if veto else "executed"}
    return base | {"type": "tool_outcome"}


def heard(verdicts: list[tuple[str, Verdict]], number: int) -> list[tuple[object, ...]]:
    """What the partition said to the call or outcome itself, forecasts left aside."""
    return [
        (verdict.action.value, verdict.level.value, verdict.detector, verdict.count, verdict.key)
        for _, verdict in verdicts
        if verdict.evidence.event == f"e{number}" and not _foretold(verdict)
    ]


def _foretold(verdict: Verdict) -> bool:
    return verdict.action == "release"


def wanted(played: Played, step: Case, *, veto: bool) -> list[tuple[object, ...]]:
    """What conformance's judgement means for the control topic."""
    finding = played.finding
    if step["op"] != "call" or finding is None:
        return []
    said = (finding.level.value, finding.detector.value, finding.count, finding.key)
    if finding.level == "critical":
        return [("answer" if veto else "block", *said)]
    return [("answer" if veto else "warn", *said)] if played.step.announced else []


@pytest.mark.parametrize(
    ("name", "profile", "least"),
    [
        ("documented-directed.jsonl", "documented", 100),
        pytest.param(
            "documented-random-public.jsonl.gz", "documented", 250, marks=pytest.mark.slow
        ),
        ("latest-directed.jsonl", "reference-2026-9", 40),
    ],
)
def test_each_run_is_judged_by_its_own_steps(name: str, profile: Profile, least: int) -> None:
    found = cases(name, 250)
    assert len(found) >= least
    seen: Counter[str] = Counter()
    for case in found:
        check(case, profile, seen)
    assert seen["compared"] > 50
    assert seen["critical"] > 0


def check(case: Case, profile: Profile, seen: Counter[str]) -> None:
    veto = case.get("onCritical") == "veto"
    block = case.get("config")
    limits = resolve(block) if profile == "documented" else resolve_reference(block)
    deployment = Deployment("test", profile=profile, announce="reference")
    feed = Feed(deployment=deployment, settings=block)
    drivers: dict[str, SessionDriver] = {}
    aborted: set[str] = set()
    for number, step in enumerate(case["steps"]):
        scope = scope_of(step)
        driver = drivers.setdefault(scope, SessionDriver(limits, profile, veto=veto))
        played = driver.play(step)
        feed.feed(event_of(step, number, veto=veto))
        said = heard(feed.partition.verdicts, number)
        expected = wanted(played, step, veto=veto)
        if step["op"] == "call":
            calls = [v for v in said if v[0] in {"answer", "warn"} or v in expected]
            assert [v for v in calls if v[1] != "none"] == expected, (case["id"], number)
            seen["compared"] += len(expected)
            seen["critical"] += any(v[1] == "critical" for v in expected)
        elif played.step.guard.abort:
            assert any(v[0] == "abort" for v in said) == (scope not in aborted)
            aborted.add(scope)
        assert length(feed.partition, scope) == driver.history_length, (case["id"], number)
        feed.partition.verdicts.clear()
    assert feed.codes == [], case["id"]


def length(partition: Partition, scope: str) -> int:
    state = partition.live.get(scope)
    return 0 if state is None else len(state.history)
