"""Profile ``extended`` explained: what its detectors count, and the settings that they go by."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from loopstream.events import Pin
from loopstream.partition.marker import policy_text
from loopstream.policy.deployment import Deployment, Mode, Profile
from tests.cli.conftest import Cli
from tests.extended.variants import LOOPS
from tests.replay.files import control, kcat

Fields = dict[str, Any]
PATIENT = {"bash": {"patience": 2}}


def pin_of(profile: Profile, mode: Mode = "enforce", **block: Any) -> Pin:
    return Pin(
        v=1,
        type="pin",
        time=1,
        config_offset=0,
        commands_offset=-1,
        settings={"*": json.dumps({"enabled": True, **block})},
        policy=policy_text(Deployment("p", profile, mode=mode)),
    )


def events_of(steps: list[Fields]) -> list[Fields]:
    made = []
    for at, step in enumerate(steps):
        base: Fields = {"v": 1, "id": f"e{at}", "run": "r", "agent": "a", "seq": at + 1}
        base |= {"time": 1000 * (at + 1), "epoch": 1}
        if step["op"] == "compaction":
            made.append(base | {"type": "compaction", "retried": False})
            continue
        base |= {"tool": step["tool"], "args": json.dumps(step["args"])}
        if step["op"] == "call":
            made.append(base | {"type": "tool_call"})
        else:
            came = {name: json.dumps(step[name]) for name in ("result", "error") if name in step}
            made.append(base | {"type": "tool_outcome"} | came)
    return made


def file_of(tmp_path: Path, steps: list[Fields], **block: Any) -> Path:
    pin = pin_of("extended", **block)
    return kcat(tmp_path / "k.jsonl", events_of(steps), partitions=1, pin=pin)


def told(cli: Cli, log: Path) -> list[Fields]:
    said = cli("explain", "r", log, "-o", "ndjson")
    assert said.code == 0, said.err
    rows: list[Fields] = said.rows
    return rows


@pytest.mark.parametrize("name", LOOPS)
def test_each_verdict_is_what_some_detector_is_seen_to_say(
    cli: Cli, tmp_path: Path, name: str
) -> None:
    entries = told(cli, file_of(tmp_path, LOOPS[name][1]))
    spoken = 0
    for entry in entries:
        for verdict in entry["verdicts"]:
            if verdict["action"] == "release" or entry.get("judged") == "critical":
                continue
            saw = [s for s in entry["saw"] if s["detector"] == verdict["detector"]]
            counts = [c for sight in saw for c in sight["counts"]]
            assert (verdict["count"], verdict["threshold"]) in [
                (c["count"], c["threshold"]) for c in counts
            ]
            assert all(sight["levels"] and sight["keyed_on"] for sight in saw)
            assert verdict["detector"] in entry["why"]
            spoken += 1
        if entry.get("judged") == "critical":
            assert "covers it" in entry["why"]
    assert spoken
    lines = cli("explain", "r", tmp_path / "k.jsonl").out
    assert "saw: " in lines
    assert "why: " in lines


def test_counts_grow_towards_the_first_level(cli: Cli, tmp_path: Path) -> None:
    entries = told(cli, file_of(tmp_path, LOOPS["durations"][1]))
    outcomes = [entry for entry in entries if entry["kind"] == "tool_outcome"]
    assert [entry["streak"] for entry in outcomes] == list(range(1, 13))
    seen = [
        (count["count"], count["threshold"], count["level"], sight["speaks"])
        for entry in outcomes
        for sight in entry["saw"]
        if sight["detector"] == "generic_repeat"
        for count in sight["counts"]
    ]
    assert seen[:6] == [*((n, 6, "warning", None) for n in range(1, 6)), (6, 6, *["warning"] * 2)]
    assert seen[9] == (10, 10, "critical", "critical")


def test_settings_in_force_are_the_profile_s(cli: Cli, tmp_path: Path) -> None:
    part = {"detectors": {"generic_repeat": {"warn": 4, "block": 7}}, "tools": PATIENT}
    log = file_of(tmp_path, LOOPS["durations"][1], extended=part, modes={"cycle": "shadow"})
    (first,) = [entry["settings"] for entry in told(cli, log) if "settings" in entry]
    resolved = first["resolved"]
    assert resolved.keys() == {"enabled", "extended"}
    detectors = resolved["extended"]["detectors"]
    assert (detectors["generic_repeat"]["warn"], detectors["generic_repeat"]["block"]) == (4, 7)
    assert detectors["cycle"]["mode"] == "shadow"
    assert resolved["extended"]["tools"]["bash"]["patience"] == 2
    out = tmp_path / "r.html"
    assert cli("report", "r", "--file", log, "--out", out).code == 0
    page = out.read_text()
    assert "generic_repeat warn 4" in page
    assert "warningThreshold" not in page


def test_a_mode_is_marked_where_verdicts_are_read(cli: Cli, tmp_path: Path) -> None:
    log = file_of(tmp_path, LOOPS["durations"][1], extended={"mode": "shadow"})
    assert re.search(r"BLOCK \(shadow\) generic_repeat 10/10", cli("explain", "r", log).out)


@pytest.mark.parametrize("profile", ["documented", "extended"])
def test_what_an_operator_released_is_said_to_be_muted(
    cli: Cli, tmp_path: Path, profile: Profile
) -> None:
    steps = LOOPS["durations"][1]
    steps = [step | {"result": "3 hits"} if step["op"] == "outcome" else step for step in steps]
    events = events_of(steps * 4)
    body = json.dumps({"action": "release", "by": "Ada", "reason": "fine"})
    order = control(0, body, key="r", source="commands")
    log = kcat(
        tmp_path / "k.jsonl", [*events[:44], order, *events[44:]], partitions=1, pin=pin_of(profile)
    )
    entries = told(cli, log)
    at = next(n for n, e in enumerate(entries) if e["kind"] == "operator_release")
    (released,) = entries[at]["verdicts"]
    assert released["reason"] == "By Ada: fine"
    assert entries[at]["muted"] == "not judged again while its result stays the same"
    later = [entry["muted"] for entry in entries[at + 1 :] if "muted" in entry]
    assert len(later) > 10
    assert set(later) == {"released by Ada: not judged again while its result stays the same"}
    assert "released by Ada" in cli("explain", "r", log).out
