from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopstream.events import Action, Evidence, Level, Verdict
from loopstream.events.verdict import Target
from loopstream.replay.diff import CHANGES, Comparison, Diff, canonical
from loopstream.replay.lane import verdict_line
from loopstream.replay.recorded import RecordedVerdict
from loopstream.wire.verdicts import encode_model
from tests.cli.conftest import Cli
from tests.replay.traffic import verdict


def output(
    path: Path,
    verdicts: list[Verdict],
    what_if: str | None = None,
    partial: tuple[str, ...] = (),
) -> Path:
    head = {
        "type": "replay", "v": 1, "log": "x", "partitions": 1, "spans": {"0": [0, 1_000_000]},
        "what_if": what_if, "scopes": [], "agents": [],
    }  # fmt: skip
    lines = [json.dumps(head).encode() + b"\n", *(verdict_line(each, {}) for each in verdicts)]
    lines += [json.dumps({"type": "partial", "scope": s}).encode() + b"\n" for s in partial]
    path.write_bytes(b"".join([*lines, b'{"type": "end"}\n']))
    return path


def at(number: int, run: str = "r", **more: Any) -> Verdict:
    return verdict(run, number, **more)


def counts(cli: Cli, tmp_path: Path, a: list[Verdict], b: list[Verdict], **more: Any) -> Any:
    one = output(tmp_path / "a.ndjson", a)
    two = output(tmp_path / "b.ndjson", b, **more)
    said = cli("diff", one, two, "-o", "json")
    assert said.code == 0, said.err
    return {change: count for change, count in said.json["counts"].items() if count}


def test_equal_outputs_are_the_same(cli: Cli, tmp_path: Path) -> None:
    verdicts = [at(1), at(2), at(3)]
    assert counts(cli, tmp_path, verdicts, verdicts) == {"same": 3}


def test_a_repeated_record_is_one_verdict(cli: Cli, tmp_path: Path) -> None:
    assert counts(cli, tmp_path, [at(1), at(1)], [at(1)]) == {"same": 1}


def test_the_same_id_with_other_bytes_has_changed(cli: Cli, tmp_path: Path) -> None:
    assert counts(cli, tmp_path, [at(1)], [at(1, count=21)]) == {"changed": 1}


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        *(("changed", fields) for fields in (
            {"threshold": 30}, {"level": Level.WARNING}, {"mode": "shadow"},
            {"applies_to": (Target(signature="s"),)}, {"instead_of": Action.ABORT},
        )),
        *(("details", fields) for fields in (
            {"reason": "in other words"}, {"settings": "fedcba9876543210"}, {"event_time": 7},
            {"append_time": 9}, {"runner": "other"}, {"seq": 99},
        )),
    ],
)  # fmt: skip
def test_what_was_decided_is_told_from_how_it_is_told(
    cli: Cli, tmp_path: Path, change: str, fields: dict[str, Any]
) -> None:
    assert counts(cli, tmp_path, [at(1)], [at(1, **fields)]) == {change: 1}


def test_earlier_later_and_other_action(cli: Cli, tmp_path: Path) -> None:
    there = Evidence(event="e9", partition=0, offset=9)
    here = Evidence(event="e1", partition=0, offset=1)
    assert counts(cli, tmp_path, [at(1)], [at(9, evidence=there)]) == {"later": 1}
    assert counts(cli, tmp_path, [at(9, evidence=there)], [at(1)]) == {"earlier": 1}
    other = at(7, evidence=here, action=Action.WARN, key="other")
    assert counts(cli, tmp_path, [at(1)], [other]) == {"other_action": 1}


def test_only_in_one(cli: Cli, tmp_path: Path) -> None:
    assert counts(cli, tmp_path, [at(1)], [at(2, run="other")]) == {"only_a": 1, "only_b": 1}


def test_partial_runs_are_outside(cli: Cli, tmp_path: Path) -> None:
    found = counts(cli, tmp_path, [at(1, run="old"), at(2)], [at(2)], partial=("old",))
    assert found == {"same": 1}


def test_exit_codes(cli: Cli, tmp_path: Path) -> None:
    one = output(tmp_path / "a.ndjson", [at(1)])
    warned = at(2, run="x", action=Action.WARN)
    two = output(tmp_path / "b.ndjson", [at(1), warned])
    tried = output(tmp_path / "c.ndjson", [at(1, settings="f" * 16)], what_if="other settings")
    assert cli("diff", one, two).code == 0
    assert cli("diff", one, two, "--fail-on", "any").code == 1
    assert cli("diff", one, two, "--fail-on", "stops").code == 0
    assert cli("diff", one, tried, "--fail-on", "any").code == 0, "settings differ by intent"
    assert cli("diff", one, one, "--fail-on", "any").code == 0
    assert cli("diff", "recorded", "recorded").code == 2
    assert cli("diff", one, "nowhere.ndjson").code == 5


def test_tables_and_rows_name_runs_and_places(cli: Cli, tmp_path: Path) -> None:
    one = output(tmp_path / "a.ndjson", [at(1, agent="anna")])
    two = output(tmp_path / "b.ndjson", [at(1, agent="anna"), at(2, run="x", agent="bert")])
    table = cli("diff", one, two).out
    assert "anna" in table
    assert "only_b=1" in table
    (row,) = cli("diff", one, two, "-o", "ndjson").rows
    assert (row["change"], row["scope"], row["b"]["offset"]) == ("only_b", "x", 2)


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lambda data: data[: len(data) // 2], "not JSON"),
        (lambda data: data.rsplit(b"\n", 2)[0] + b"\n", "cut short"),
        (lambda data: data.replace(b'"type": "replay"', b'"type": "r"'), "no output of a replay"),
        (lambda data: data.replace(b'"action"', b'"axtion"'), "not a Verdict"),
        (lambda data: data.replace(b'"type": "end"', b'"type": "x"'), "no line of a replay"),
    ],
)
def test_a_corrupt_output_is_named(cli: Cli, tmp_path: Path, damage: Any, complaint: str) -> None:
    good = output(tmp_path / "a.ndjson", [at(1), at(2)])
    bad = tmp_path / "b.ndjson"
    bad.write_bytes(damage(good.read_bytes()))
    said = cli("diff", good, bad)
    assert said.code == 5
    assert complaint in said.err
    assert "b.ndjson" in said.err


def test_bytes_that_our_encoder_would_not_make_are_equal_to_none() -> None:
    made = at(1)
    for form in ("msgpack", "json"):
        value = encode_model(made, form)
        assert canonical(RecordedVerdict(made, value, 0, 0, 0, None)) == encode_model(made)
    spaced = encode_model(made, "json").replace(b":", b": ", 1)
    assert canonical(RecordedVerdict(made, spaced, 0, 0, 0, None)) == spaced


def compare(a: list[Verdict], b: list[Verdict]) -> Comparison:
    diff = Diff()
    try:
        diff._load("a", ((each, encode_model(each)) for each in a))
        diff._load("b", ((each, encode_model(each)) for each in b))
        return diff.compare()
    finally:
        diff.close()


numbers = st.integers(0, 12)
made = st.builds(
    lambda number, run, action: at(
        number + 20 * run + 100 * list(Action).index(action),
        run=f"r{run}",
        action=action,
        evidence=Evidence(event=f"e{number}", partition=0, offset=number),
    ),
    numbers,
    st.integers(0, 2),
    st.sampled_from(Action),
)
sides = st.lists(made, max_size=12, unique_by=lambda each: each.id)


@settings(deadline=None)
@given(sides)
def test_a_side_equals_itself(side: list[Verdict]) -> None:
    found = compare(side, side)
    assert found.differences == 0
    assert found.counts["same"] == len(side)


@settings(deadline=None)
@given(sides, sides)
def test_every_verdict_is_accounted_for_once(a: list[Verdict], b: list[Verdict]) -> None:
    found, turned = compare(a, b), compare(b, a)
    paired = sum(found.counts[c] for c in CHANGES if not c.startswith("only"))
    assert paired + found.counts["only_a"] == len(a)
    assert paired + found.counts["only_b"] == len(b)
    swapped = {"only_a": "only_b", "only_b": "only_a", "earlier": "later", "later": "earlier"}
    for change in CHANGES:
        if change not in {"earlier", "later"}:
            assert found.counts[change] == turned.counts[swapped.get(change, change)]
    for group in (found.by_detector, found.by_agent):
        assert sum(sum(counts.values()) for counts in group.values()) == sum(found.counts.values())
