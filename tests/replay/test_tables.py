from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.replay.files import kcat, pinned
from tests.replay.traffic import Teller, healthy, interleaved, looping


@pytest.fixture
def log(tmp_path: Path) -> Path:
    runs = [looping("l1", agent="a"), looping("l2", agent="b"), healthy("h1", agent="a")]
    return kcat(tmp_path / "k.jsonl", interleaved(runs), partitions=2, pin=pinned())


@pytest.fixture
def exported(cli: Cli, log: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "export"
    said = cli("export", folder, log)
    assert said.code == 0, said.err
    return folder


def ask(cli: Cli, folder: Path, query: str) -> list[Any]:
    said = cli("sql", "--export", folder, query, "-o", "ndjson")
    assert said.code == 0, said.err
    return said.rows


def test_an_export_is_judged_as_its_source(cli: Cli, log: Path, exported: Path) -> None:
    source = cli("replay", log, "-o", "ndjson").rows
    again = cli("replay", exported / "events.parquet", "-o", "ndjson").rows
    assert again[1:-1] == source[1:-1] != []
    assert again[0]["spans"] == source[0]["spans"]


def test_views_agree_with_what_happened(cli: Cli, exported: Path) -> None:
    runs = {row["run"]: row for row in ask(cli, exported, "select * from runs")}
    assert set(runs) == {"l1", "l2", "h1"}
    assert runs["l1"]["calls"] == 32
    assert runs["l1"]["warnings"] == 1
    assert runs["h1"]["warnings"] == runs["h1"]["calls_after_first"] == 0
    # Warned at the call that finds ten before it: the 13th call of 32.
    assert runs["l1"]["calls_after_first"] == 32 - 13
    loops = ask(cli, exported, "select run, tool, calls, results from loops order by run")
    assert loops == [
        {"run": "l1", "tool": "exec", "calls": 30, "results": 1},
        {"run": "l2", "tool": "exec", "calls": 30, "results": 1},
    ]
    (calls,) = ask(
        cli,
        exported,
        "select count(*) n, count(result_digest) settled, min(duration_ms) ms from calls",
    )
    assert calls == {"n": 94, "settled": 94, "ms": 1000}
    (place,) = ask(
        cli,
        exported,
        'select topic, min("offset") first, count(distinct "partition") parts '
        "from events group by topic",
    )
    assert place == {"topic": "k.jsonl", "first": 0, "parts": 2}


def test_rows_and_timing_are_said(cli: Cli, exported: Path) -> None:
    said = cli("sql", "--export", exported, "select 1 as one")
    assert "1 rows, 0." in said.err
    assert "one" in said.out


@pytest.mark.parametrize(
    "query",
    [
        "select * from read_text('/etc/hostname')",
        "select * from read_csv('k.jsonl')",
        "copy events to 'stolen.csv'",
        "copy events to 'export/events.parquet'",
        "attach 'other.db'",
        "install httpfs",
        "set enable_external_access = true",
        "create table t as select 1",
        "select 1; select 2",
        "",
        "selec 1",
        "select * from nothing",
    ],
)
def test_a_query_reaches_nothing_but_the_data(
    cli: Cli, exported: Path, tmp_path: Path, query: str
) -> None:
    before = (exported / "events.parquet").read_bytes()
    said = cli("sql", "--export", exported, query)
    assert said.code == 2
    assert said.out == ""
    assert "loopstream: sql: " in said.err
    assert (exported / "events.parquet").read_bytes() == before
    assert not (tmp_path / "stolen.csv").exists()


def test_questions_to_a_file_of_events(cli: Cli, log: Path) -> None:
    said = cli("sql", "select count(*) n from verdicts where action = 'warn'", log, "-o", "ndjson")
    assert said.rows == [{"n": 2}]
    assert "events: " in said.err


def test_refused_events_are_rows_too(cli: Cli, tmp_path: Path) -> None:
    teller = Teller("r1")
    good, bad = teller.event("run_started"), {"v": 1, "type": "tool_call", "run": "r1"}
    log = kcat(tmp_path / "k.jsonl", [good, bad], partitions=1, pin=pinned())
    cli("export", tmp_path / "export", log)
    rows = ask(cli, tmp_path / "export", 'select refused, type from events order by "offset"')
    assert rows == [
        {"refused": None, "type": "pin"},
        {"refused": None, "type": "run_started"},
        {"refused": "invalid", "type": None},
    ]
    again = cli("replay", tmp_path / "export" / "events.parquet", "-o", "json")
    assert again.json[0]["rejects"] == {"invalid": 1}


def test_a_corrupt_parquet_and_a_strange_one(cli: Cli, exported: Path, tmp_path: Path) -> None:
    whole = (exported / "events.parquet").read_bytes()
    corrupt = tmp_path / "corrupt.parquet"
    corrupt.write_bytes(whole[:400])
    said = cli("replay", corrupt)
    assert said.code == 5
    assert "no Parquet" in said.err
    strange = cli("replay", exported / "verdicts.parquet")
    assert strange.code == 5
    assert "lacks the columns" in strange.err


def test_an_export_that_is_not_there(cli: Cli, tmp_path: Path) -> None:
    said = cli("sql", "--export", tmp_path / "none", "select 1")
    assert (said.code, "no such file" in said.err) == (5, True)


@pytest.mark.kafka
def test_questions_to_the_topics(on_kafka: Cli, cluster: Any, tmp_path: Path) -> None:
    on = tmp_path / "on.json"
    on.write_text('{"enabled": true}')
    assert on_kafka("config", "push", on).code == 0
    cluster.send(interleaved([looping("r1"), healthy("r2")]), frame=4)
    worker = cluster.worker()
    cluster.wait_judged(["r1"])
    cluster.stop(worker)
    said = on_kafka(
        "sql",
        "select run, warnings, block_verdicts > 0 blocked from runs order by run",
        "-o",
        "ndjson",
    )
    assert said.code == 0, said.err
    assert said.rows == [
        {"run": "r1", "warnings": 1, "blocked": True},
        {"run": "r2", "warnings": 0, "blocked": False},
    ]
    none = on_kafka("export", tmp_path / "none", "--since", "@999999")
    assert none.code == 0
    assert "the range is empty" in none.err
