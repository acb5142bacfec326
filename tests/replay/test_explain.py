from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from loopstream.cli.explain import lines_of
from tests.cli.conftest import Cli
from tests.replay.files import control, kcat, pinned
from tests.replay.traffic import Teller, healthy, interleaved, looping


def entries(cli: Cli, *arguments: object) -> list[Any]:
    said = cli("explain", *arguments, "-o", "ndjson")
    assert said.code == 0, said.err
    return said.rows


@pytest.fixture
def log(tmp_path: Path) -> Path:
    events = interleaved([looping("r1"), healthy("r2"), looping("r3")])
    return kcat(tmp_path / "k.jsonl", events, partitions=1, pin=pinned())


def test_every_event_of_the_run_and_no_other(cli: Cli, log: Path) -> None:
    told = entries(cli, "r1", log)
    assert [entry["seq"] for entry in told] == list(range(1, len(looping("r1")) + 1))


def test_groups_results_and_streaks(cli: Cli, log: Path) -> None:
    told = entries(cli, "r1", log)
    calls = [entry for entry in told if entry["kind"] == "tool_call"]
    assert [call["group"] for call in calls[:4]] == ["A", "B", "C", "C"]
    results = [entry for entry in told if entry["kind"] == "tool_outcome"]
    assert [entry["result"] for entry in results[:3]] == ["A1", "B1", "C1"]
    assert [entry["streak"] for entry in results[2:6]] == [1, 2, 3, 4]


def test_why_the_winner_won_and_what_the_others_saw(cli: Cli, log: Path) -> None:
    told = entries(cli, "r1", log)
    (warned,) = [e for e in told if any(v["action"] == "warn" for v in e["verdicts"])][:1]
    assert warned["why"] == "generic_repeat is the first in order that speaks, and the only one"
    saw = {sight["detector"]: sight for sight in warned["saw"]}
    assert {"level": "warning", "count": 10, "threshold": 10} in saw["generic_repeat"]["counts"]
    assert {"level": "critical", "count": 10, "threshold": 20} in saw["generic_repeat"]["counts"]
    assert {"level": "critical", "count": 10, "threshold": 30} in saw["global_circuit_breaker"][
        "counts"
    ]
    assert saw["global_circuit_breaker"]["speaks"] is None
    assert saw["unknown_tool_repeat"]["counts"] == []
    quiet = next(e for e in told if e["kind"] == "tool_call")
    assert quiet["why"] == "no detector has reached its threshold"


def test_settings_in_force_and_where_from(cli: Cli, tmp_path: Path) -> None:
    events = looping("r1")
    change = control(4, '{"enabled": true, "warningThreshold": 3}', key="tester")
    log = kcat(
        tmp_path / "k.jsonl", [*events[:10], change, *events[10:]], partitions=1, pin=pinned()
    )
    told = entries(cli, "r1", log)
    first, second = [entry["settings"] for entry in told if "settings" in entry]
    assert first["from"] == {"*": "the partition's pin (config@0)"}
    assert first["resolved"]["warningThreshold"] == 10
    assert second["from"]["tester"] == "pushed by config@4, in force @11"
    assert second["resolved"]["warningThreshold"] == 3


def test_what_the_runner_did_after(cli: Cli, tmp_path: Path) -> None:
    teller = Teller("r1")
    events = [teller.event("run_started")]
    for _ in range(20):
        events += teller.turn("exec", {"command": "make"}, "no")
    events.append(teller.call("exec", {"command": "make"}, disposition="refused"))
    events += teller.turn("read", {"path": "x"}, "text")
    events.append(teller.event("run_ended", status="failed"))
    log = kcat(tmp_path / "k.jsonl", events, partitions=1, pin=pinned())
    after = [entry["after"] for entry in entries(cli, "r1", log) if "after" in entry]
    assert [text.split(": ")[1] for text in after] == [
        "the same call (executed)",
        "the same call (refused)",
        "another call (executed)",
    ]
    text = cli("explain", "r1", log).out
    assert "=> BLOCK generic_repeat 20/20" in text
    assert "<- after the block" in text
    assert "status ended" in text
    assert len(cli("explain", "r1", log, "--spoken").out) < len(text)


def test_up_to_an_event(cli: Cli, log: Path) -> None:
    told = entries(cli, "r1", log, "--at", 12)
    assert told[-1]["seq"] == 12
    beyond = cli("explain", "r1", log, "--at", 999)
    assert beyond.code == 2
    assert "there is no event 999" in beyond.err


def test_what_if_is_named_as_the_origin(cli: Cli, log: Path) -> None:
    told = entries(cli, "r1", log, "--set", "warningThreshold=4")
    assert "warningThreshold" in told[0]["settings"]["from"]["what_if"]
    warned = [e for e in told if any(v["action"] == "warn" for v in e["verdicts"])]
    assert warned[0]["verdicts"][0]["count"] == 4


def test_names_of_strangers_can_not_steer_the_terminal(cli: Cli, tmp_path: Path) -> None:
    teller = Teller("r1")
    tool = "\x1b[2Jexec\u202e"
    events = [teller.event("run_started"), *teller.turn(tool, {}, "x")]
    log = kcat(tmp_path / "k.jsonl", events, partitions=1, pin=pinned())
    said = cli("explain", "r1", log)
    assert "\x1b" not in said.out
    assert "\u202e" not in said.out
    assert "exec" in said.out


def test_a_warning_that_is_throttled_says_so() -> None:
    entry = {
        "n": 3, "seq": 3, "kind": "tool_call", "append_time": 0, "group": "A", "tool": "exec",
        "disposition": "executed", "preview": None, "judged": "warning", "announced": False,
        "saw": [], "why": "because", "verdicts": [],
    }  # fmt: skip
    assert any("not announced" in line for line in lines_of(entry))


@pytest.mark.kafka
def test_tail_prints_what_replay_reads(
    on_kafka: Cli, cli: Cli, cluster: Any, tmp_path: Path
) -> None:
    events = list(interleaved([looping("r1"), looping("r2")]))
    cluster.send(events, frame=5)
    cluster.send_value(0, b"\xc1 no frame")
    printed = on_kafka("tail")
    assert printed.code == 0, printed.err
    tools = [
        event["tool"]
        for row in printed.rows
        if '"events"' in row["payload"]
        for event in json.loads(row["payload"])["events"]
        if "tool" in event
    ]
    assert len(tools) == sum("tool" in event for event in events)
    file = tmp_path / "incident.jsonl"
    file.write_text(printed.out)
    on = tmp_path / "on.json"
    on.write_text('{"enabled": true}')
    # The same events at the same places, from the topic and through the pipe.
    live = on_kafka("replay", "--settings", on, "-o", "ndjson").rows
    piped = on_kafka("replay", file, "--settings", on, "-o", "ndjson").rows
    assert live[-1]["rejects"] == piped[-1]["rejects"] == {"undecodable": 1}
    assert live[1:-1] == piped[1:-1] != []
    one = on_kafka("tail", "--run", "r1", "--limit", 2)
    assert len(one.rows) == 2
