"""Replay from files: every form, and a clear answer to each thing that can be wrong."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.replay.files import bare, control, kcat, pinned
from tests.replay.traffic import Teller, healthy, interleaved, looping


@pytest.fixture
def on(tmp_path: Path) -> Path:
    file = tmp_path / "on.json"
    file.write_text('{"enabled": true}')
    return file


def test_bare_events_need_settings_and_are_judged(cli: Cli, tmp_path: Path, on: Path) -> None:
    file = bare(tmp_path / "events.jsonl", looping("r1"))
    off = cli("replay", file)
    assert (off.code, "0 verdicts" in off.out) == (0, True)
    assert "without --settings detection is off" in off.err
    judged = cli("replay", file, "--settings", on, "--fail-on", "critical")
    assert judged.code == 1
    assert "generic_repeat" in judged.out
    assert "detection is off" not in judged.err
    assert cli("replay", file, "--fail-on", "warning").code == 0


def test_gzipped_events_are_the_same(cli: Cli, tmp_path: Path, on: Path) -> None:
    plain = bare(tmp_path / "events.jsonl", looping("r1"))
    zipped = tmp_path / "events.jsonl.gz"
    zipped.write_bytes(gzip.compress(plain.read_bytes()))
    said = [
        cli("replay", file, "--settings", on, "-o", "ndjson").rows[1:-1] for file in (plain, zipped)
    ]
    assert said[0] == said[1] != []


def test_kcat_envelopes_hold_binary_frames_and_their_pin(cli: Cli, tmp_path: Path) -> None:
    runs = [f"run-{n}" for n in range(7)]
    events = list(interleaved([looping(run) for run in runs]))
    file = kcat(tmp_path / "kcat.jsonl", events, partitions=3, pin=pinned())
    said = cli("replay", file, "-o", "json")
    assert said.code == 0, said.err
    (summary,) = said.json
    assert summary["events"] == len(events)
    assert summary["runs"] == len(runs)
    assert summary["rejects"] == {}
    blocks = [row for row in cli("replay", file, "-o", "ndjson").rows if row["type"] == "verdict"]
    assert {row["run"] for row in blocks} == set(runs)


def test_settings_change_where_the_log_says_so(cli: Cli, tmp_path: Path) -> None:
    first, second = looping("before"), looping("after")
    change = control(1, '{"enabled": true, "warningThreshold": 3}')
    file = kcat(tmp_path / "k.jsonl", [*first, change, *second], partitions=1, pin=pinned())
    said = cli("replay", file, "-o", "ndjson")
    warned: dict[str, int] = {}
    for row in said.rows:
        if row.get("action") == "warn":
            warned.setdefault(row["run"], row["count"])
    assert warned == {"before": 10, "after": 3}
    assert "taken on trust" in said.err


def test_the_past_is_told_as_it_was_known_then(cli: Cli, tmp_path: Path) -> None:
    events = looping("r1")
    file = kcat(tmp_path / "k.jsonl", events, partitions=1, pin=pinned())
    whole = cli("replay", file, "-o", "ndjson").rows[1:-1]
    offsets = [row["evidence"]["offset"] for row in whole]
    cut = offsets[1]
    then = cli("replay", file, "--until", f"@{cut}", "-o", "ndjson").rows[1:-1]
    assert then == whole[: offsets.index(cut)] != []
    by_time = cli("replay", file, "--until", str(1_000_000_000_000), "-o", "ndjson").rows[1:-1]
    assert by_time == whole
    later = cli("replay", file, "--since", f"@{cut}", "-o", "ndjson").rows[1:-1]
    assert later == whole[offsets.index(cut) :], "warmed up, but only the range is reported"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"v":1,"type":"tool_call"}\nnot json\n', ":2: not JSON"),
        ('{"some":"object"}\n', ":1: neither an event nor a record"),
        ('{"partition":0,"offset":"x","payload":"y"}\n', "no number"),
        ('{"partition":0,"offset":1,"payload":5}\n', "no text"),
        ('{"partition":0,"offset":5,"payload":"{}"}\n{"partition":0,"offset":4,"payload":"{}"}\n',
         "in order"),
    ],
)  # fmt: skip
def test_a_corrupt_file_is_named_with_its_line(
    cli: Cli, tmp_path: Path, text: str, complaint: str
) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text(text)
    said = cli("replay", file)
    assert said.code == 5
    assert complaint in said.err
    assert "bad.jsonl" in said.err


def test_a_cut_gzip_is_corrupt(cli: Cli, tmp_path: Path) -> None:
    file = bare(tmp_path / "e.jsonl", looping("r1"))
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(gzip.compress(file.read_bytes())[:200])
    said = cli("replay", cut)
    assert said.code == 5
    assert "can't be read" in said.err


def test_a_file_that_is_not_there(cli: Cli) -> None:
    said = cli("replay", "nowhere.jsonl")
    assert (said.code, "no such file" in said.err) == (5, True)


def test_an_empty_range_gets_an_answer(cli: Cli, tmp_path: Path) -> None:
    file = kcat(tmp_path / "k.jsonl", looping("r1"), partitions=1, pin=pinned())
    said = cli("replay", file, "--since", "@9999")
    assert said.code == 0
    assert "the range is empty" in said.err
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    nothing = cli("replay", empty)
    assert (nothing.code, "the range is empty" in nothing.err) == (0, True)


def test_an_unknown_run_and_partition_are_told(cli: Cli, tmp_path: Path) -> None:
    file = kcat(tmp_path / "k.jsonl", looping("r1"), partitions=1, pin=pinned())
    for verb in (("replay", file, "--run", "nobody"), ("explain", "nobody", file)):
        said = cli(*verb)
        assert said.code == 2
        assert "no event of it" in said.err
    assert cli("replay", file, "--partition", "3").code == 2


def test_one_run_is_told_alone(cli: Cli, tmp_path: Path) -> None:
    events = interleaved([looping("r1"), looping("r2", agent="other"), looping("r3")])
    file = kcat(tmp_path / "k.jsonl", events, partitions=2, pin=pinned())
    whole = cli("replay", file, "-o", "ndjson").rows[1:-1]
    one = cli("replay", file, "--run", "r2", "-o", "ndjson").rows[1:-1]
    assert one == [row for row in whole if row["run"] == "r2"] != []
    by_agent = cli("replay", file, "--agent", "other", "-o", "ndjson").rows[1:-1]
    assert by_agent == one


def test_offsets_that_are_gone_are_counted_and_said(cli: Cli, tmp_path: Path) -> None:
    file = kcat(tmp_path / "k.jsonl", looping("r1"), partitions=1, pin=pinned())
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:10] + lines[13:]))
    said = cli("replay", file)
    assert said.code == 0
    assert "3 offsets are missing" in said.err


def test_runs_whose_beginning_is_gone_are_partial(cli: Cli, tmp_path: Path) -> None:
    events = list(interleaved([looping("old", turns=30)]))
    file = kcat(
        tmp_path / "k.jsonl",
        [*events[20:], *looping("new")],
        partitions=1,
        pin=pinned(),
        first_offset=500,
    )
    said = cli("replay", file, "-o", "ndjson")
    partial = {row["run"] for row in said.rows if row.get("replay", {}).get("partial")}
    assert partial == {"old"}
    assert {"type": "partial", "scope": "old"} in said.rows
    assert "the beginning of 1 runs is gone" in said.err


def test_what_if_counts_first_verdicts_and_censors_after_a_refusal(
    cli: Cli, tmp_path: Path
) -> None:
    teller = Teller("stopped")
    events = [teller.event("run_started")]
    for _ in range(6):
        events += teller.turn("exec", {"command": "make"}, "no")
    events.append(teller.call("exec", {"command": "make"}, disposition="refused"))
    for _ in range(10):
        events += teller.turn("exec", {"command": "make"}, "no")
    file = kcat(
        tmp_path / "k.jsonl",
        [*events, *looping("free"), *healthy("fine")],
        partitions=1,
        pin=pinned(warningThreshold=3, criticalThreshold=6),
    )
    said = cli("replay", file, "--set", "warningThreshold=8", "-o", "ndjson")
    marks = [(row["run"], row.get("replay", {})) for row in said.rows if row["type"] == "verdict"]
    assert ("stopped", {"censored": True}) in marks
    assert not any(run == "stopped" and "first" in mark for run, mark in marks)
    assert [run for run, mark in marks if mark.get("first")] == ["free"]
    assert said.rows[-1]["censored"] == sum(bool(m.get("censored")) for _, m in marks) > 0
    table = cli("replay", file, "--set", "warningThreshold=8")
    assert "censored (after a recorded refusal)" in table.out


@pytest.mark.parametrize(
    "assignment", ["warningThreshold", "nothing=1", "warningThreshold=high", "a.b.c=1",
                   "historySize=20000", "warningThreshold=-2"],
)  # fmt: skip
def test_a_setting_that_is_none_is_refused(cli: Cli, tmp_path: Path, assignment: str) -> None:
    file = bare(tmp_path / "events.jsonl", looping("r1"))
    said = cli("replay", file, "--set", assignment)
    assert said.code == 2
    assert "--set" in said.err


def test_a_reader_that_leaves_is_no_error(tmp_path: Path, on: Path) -> None:
    file = bare(tmp_path / "e.jsonl", interleaved([looping(f"r{n}", 60) for n in range(60)]))
    command = [sys.executable, "-m", "loopstream", "replay", str(file), "--settings", str(on)]
    with subprocess.Popen(
        [*command, "-o", "ndjson"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    ) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["type"] == "replay"
        process.stdout.close()
        assert process.stderr is not None
        talk = process.stderr.read().decode()
        assert process.wait(60) == 0, talk
    assert "Traceback" not in talk
    assert "Broken" not in talk


def test_a_state_that_is_corrupt_is_named(cli: Cli, tmp_path: Path, on: Path) -> None:
    file = bare(tmp_path / "events.jsonl", looping("r1"))
    state = tmp_path / "state"
    assert cli("replay", file, "--settings", on, "--state", state).code == 0
    (state / "partition-0.sqlite").write_bytes(b"no database at all" * 100)
    for extra in state.glob("*-wal"):
        extra.unlink()
    said = cli("replay", file, "--settings", on, "--state", state)
    assert said.code == 5
    assert "no usable state" in said.err
