"""The shared vectors: our engine, the naive engine, and a player that is wrong on purpose."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from loopstream.conformance import Mismatch, Report, check_files, engine_player
from loopstream.errors import DataError
from loopstream.fingerprint.calls import is_poll
from loopstream.fingerprint.canonical import MISSING
from loopstream.fingerprint.outcomes import fingerprint_outcome
from loopstream.policy.deployment import Profile
from loopstream.policy.settings import resolve, resolve_reference
from loopstream.testing import Played, SessionDriver
from tests.conftest import SHARED
from tests.engine.naive import Call, Compacted, Naive, Outcome, Watched

VECTORS = SHARED / "vectors"
DIRECTED = VECTORS / "documented-directed.jsonl"
RANDOM = VECTORS / "documented-random-public.jsonl.gz"
LATEST = VECTORS / "latest-directed.jsonl"
CONFIG = VECTORS / "config.jsonl"
FILES: list[tuple[Path, Profile, int, int]] = [
    (DIRECTED, "documented", 389, 6_848),
    (RANDOM, "documented", 1_500, 80_040),
    (LATEST, "reference-2026-9", 105, 3_983),
    (CONFIG, "documented", 153, 0),
]
STEPPED = FILES[:3]
# The largest file takes as long as all others together: `make test-fast` does without it.
LARGE = {RANDOM: [pytest.mark.slow]}


def params(files: list[tuple[Path, Profile, int, int]]) -> list[Any]:
    return [pytest.param(*file, marks=LARGE.get(file[0], [])) for file in files]


@pytest.mark.parametrize(("path", "profile", "scenarios", "steps"), params(FILES))
def test_the_engine_gives_what_the_reference_gives(
    path: Path, profile: Profile, scenarios: int, steps: int
) -> None:
    report = check_files([path], profile)
    assert report.mismatches == []
    assert report.closing_line() == f"scenarios={scenarios} steps={steps} mismatches=0"


def cases(path: Path) -> list[dict[str, Any]]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize(("path", "profile", "scenarios", "steps"), params(STEPPED))
def test_the_naive_engine_gives_what_the_reference_gives(
    path: Path, profile: Profile, scenarios: int, steps: int
) -> None:
    for case in cases(path):
        block = case.get("config")
        settled = resolve(block) if profile == "documented" else resolve_reference(block)
        veto = case.get("onCritical") == "veto"
        naive = Naive(settled, latest=profile != "documented", veto=veto)
        for number, step in enumerate(case["steps"]):
            assert naive_says(naive, step, profile) == expected(step), (case["id"], number)
        assert len(naive.history) == case["final"]["historyLength"], case["id"]


def expected(step: dict[str, Any]) -> object:
    return step.get("expect") if step["op"] == "call" else step.get("guard")


def naive_says(naive: Naive, step: dict[str, Any], profile: str) -> object:
    run, call_id, args = step.get("run"), step.get("callId"), step.get("args", MISSING)
    if step["op"] == "compaction":
        naive.compacted(Compacted(run))
        return None
    tool, poll = step["tool"], is_poll(step["tool"], args)
    if step["op"] == "call":
        found, announced = naive.call(Call(tool, step["argsHash"], poll, call_id, run))
        if found is None:
            return None
        named = {
            "level": found.level,
            "detector": found.detector,
            "count": found.count,
            "warningKey": found.key,
            "pairedTool": found.paired_tool,
            "livenessSignal": found.liveness,
            "emit": announced if found.level == "warning" else None,
        }
        return {name: value for name, value in named.items() if value is not None}
    watched = naive.outcome(_outcome(step, args, profile))
    return None if "guard" not in step or watched is None else _guard(watched)


def _outcome(step: dict[str, Any], args: object, profile: str) -> Outcome:
    result, error = step.get("result", MISSING), step.get("error", MISSING)
    # Only what the vectors do not show: the arguments' digest and the failure identity.
    seen = fingerprint_outcome(step["tool"], args, result=result, error=error, profile=profile)
    return Outcome(
        step["tool"],
        f"{step['tool']}:{seen.args.hex()}",
        step["resultHash"],
        step.get("callId"),
        step.get("run"),
        step.get("unknownTool"),
        step.get("outcomeKind") == "tool-loop-veto",
        step.get("noProgress", False),
        None if seen.failure is None else seen.failure.hex(),
    )


def _guard(watched: Watched) -> dict[str, object]:
    said: dict[str, object] = {
        "abort": watched.abort,
        "armed": watched.armed,
        "remaining": watched.remaining,
    }
    if watched.abort:
        said |= {"count": watched.count, "detector": "compaction_loop_persisted"}
    return said


# -- the checker can fail --------------------------------------------------------------------


class Forgetful:
    """Plays the engine, but never hears of compactions and enters every call twice."""

    def __init__(self, driver: SessionDriver) -> None:
        self._driver = driver

    @property
    def history_length(self) -> int:
        return self._driver.history_length

    def play(self, step: dict[str, Any]) -> Played:
        if step["op"] == "compaction":
            return self._driver.play({"op": "call", "tool": "nothing"})
        if step["op"] == "call":
            self._driver.play(step)
        return self._driver.play(step)


def check_broken(path: Path, profile: Profile) -> Report:
    def broken(case: dict[str, Any], of: Profile) -> Forgetful:
        player = engine_player(case, of)
        assert isinstance(player, SessionDriver)
        return Forgetful(player)

    return check_files([path], profile, broken)


@pytest.mark.parametrize(("path", "profile"), [(DIRECTED, "documented"), (LATEST, FILES[2][1])])
def test_a_broken_engine_is_found_out(path: Path, profile: Profile) -> None:
    report = check_broken(path, profile)
    fields = {mismatch.field for mismatch in report.mismatches}
    assert {"expect.count", "expect", "guard", "final.historyLength"} <= fields
    assert report.closing_line().endswith(f"mismatches={len(report.mismatches)}")


def test_a_mismatch_says_where_and_what() -> None:
    report = check_broken(DIRECTED, "documented")
    first = report.mismatches[0]
    assert first == Mismatch(
        file="documented-directed.jsonl",
        scenario="doc-001-generic",
        step=first.step,
        field=first.field,
        expected=first.expected,
        got=first.got,
    )
    step = cases(DIRECTED)[0]["steps"][first.step]
    assert first.expected == (step["expect"] if first.field == "expect" else first.expected)
    assert first.expected != first.got
    ends = [m for m in report.mismatches if m.step == -1]
    assert {m.field for m in ends} == {"final.historyLength"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("argsHash", "read:0"),
        ("expect", {"level": "warning"}),
        ("resultHash", "0"),
        ("unknownTool", "x"),
        ("guard", {"abort": True}),
    ],
)
def test_every_field_of_a_step_is_compared(tmp_path: Path, field: str, value: object) -> None:
    case = cases(DIRECTED)[0]
    at = 0 if field in {"argsHash", "expect"} else 1
    case["steps"][at][field] = value
    changed = tmp_path / "changed.jsonl"
    changed.write_text(json.dumps(case))
    (mismatch,) = check_files([changed], "documented").mismatches
    assert (mismatch.file, mismatch.scenario, mismatch.step) == ("changed.jsonl", case["id"], at)
    assert mismatch.field.split(".")[0] == field
    assert mismatch.expected == value or mismatch.field != field


@pytest.mark.parametrize("field", ["merged", "resolved", "guard", "strictSchema"])
def test_every_field_of_a_settings_case_is_compared(tmp_path: Path, field: str) -> None:
    case = cases(CONFIG)[0]
    case[field] = {"surprise": 1}
    changed = tmp_path / "changed.jsonl"
    changed.write_text(json.dumps(case))
    mismatches = check_files([changed], "documented").mismatches
    assert {m.field.split(".")[0] for m in mismatches} == {field}
    assert {m.step for m in mismatches} == {-1}


# -- files that can't be read ----------------------------------------------------------------


def compressed(tmp_path: Path) -> bytes:
    packed = tmp_path / "good.jsonl.gz"
    packed.write_bytes(gzip.compress(DIRECTED.read_bytes()[:200_000].rsplit(b"\n", 1)[0]))
    assert check_files([packed], "documented").mismatches == []
    return packed.read_bytes()


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda good: good[: len(good) // 2], id="truncated"),
        pytest.param(lambda good: good[:-4], id="no length at the end"),
        pytest.param(lambda good: b"plain text\n" + good, id="no gzip at all"),
        pytest.param(lambda good: good[:200] + b"\xff" * 200 + good[400:], id="bytes overwritten"),
        pytest.param(lambda good: good[:10] + b"\xff" * 100 + good[110:], id="no deflate block"),
        pytest.param(lambda good: good[:-8] + b"\0" * 4 + good[-4:], id="wrong checksum"),
        pytest.param(lambda _: gzip.compress(b"\xff\xfe{}"), id="no UTF-8"),
    ],
)
def test_a_damaged_file_is_an_error_with_its_name(tmp_path: Path, damage: Any) -> None:
    bad = tmp_path / "bad.jsonl.gz"
    bad.write_bytes(damage(compressed(tmp_path)))
    with pytest.raises(DataError) as caught:
        check_files([bad], "documented")
    assert caught.value.where is not None
    assert caught.value.where.split(":")[0] == str(bad)


def test_a_missing_file_is_an_error_with_its_name(tmp_path: Path) -> None:
    gone = tmp_path / "gone.jsonl"
    with pytest.raises(DataError) as caught:
        check_files([gone], "documented")
    assert caught.value.where == str(gone)


NESTED = "[" * 900 + "]" * 900


@pytest.mark.parametrize(
    "line",
    [
        "not JSON",
        "[1]",
        "{}",
        '{"id": "x"}',
        '{"id": "x", "steps": 5}',
        '{"id": "x", "steps": [{"op": "jump"}], "final": {}}',
        '{"id": "x", "steps": [{"op": "call"}], "final": {}}',
        '{"id": "x", "steps": [7], "final": {}}',
        '{"id": "x", "steps": []}',
        '{"id": "x", "steps": [{"op": "compaction", "run": 7}], "final": {}}',
        '{"id": "x", "steps": [{"op": "compaction", "run": "' + "r" * 500 + '"}], "final": {}}',
        '{"id": "x", "steps": [{"op": "call", "tool": "t", "args": ' + NESTED + "}]}",
        '{"id": "x", "steps": ' + "[" * 100_000 + "]" * 100_000 + "}",
    ],
)
def test_a_line_that_is_no_scenario_is_an_error_with_its_line(tmp_path: Path, line: str) -> None:
    bad = tmp_path / "bad.jsonl"
    good = json.dumps(cases(DIRECTED)[0])
    bad.write_text(f"{good}\n\n{line}\n")
    with pytest.raises(DataError) as caught:
        check_files([bad], "documented")
    assert caught.value.where == f"{bad}:3"
