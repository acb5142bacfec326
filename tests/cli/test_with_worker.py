from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.conftest import SHARED
from tests.e2e.house import House, open_house, wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

REAL = SHARED / "real" / "runs.jsonl.gz"
REPEATS = 40
NEW = {"id": "new", "tools": {"loopDetection": {"modes": {"ping_pong": "shadow"}}}}
OWN = {"agents": {"list": [NEW]}}


@pytest.fixture
def house(bootstrap: str, prefix: str, tmp_path: Path) -> Iterator[House]:
    blocks = {"tools": {"loopDetection": {"enabled": True}}}
    with open_house(bootstrap, prefix, tmp_path, blocks=blocks) as opened:
        yield opened


def stuck(run: dict[str, Any]) -> dict[str, Any] | None:
    """A recorded run, its last two calls repeated; None of a run without calls.

    Four runs end in a call that nothing came of; no rule but a warning counts such calls. Of
    them the last two that got an answer are repeated.
    """
    steps = run["events"]
    ends = [at for at, step in enumerate(steps) if step["op"] == "outcome"]
    if not ends:
        return None
    answered = steps[: ends[-1] + 1]
    calls = [at for at, step in enumerate(answered) if step["op"] == "call"]
    return {
        "run": f"stuck-{run['run']}",
        "events": steps + answered[calls[-2:][0] :] * REPEATS,
    }


def test_the_samples_are_judged_and_shown(on_kafka: Cli, house: House) -> None:
    assert on_kafka("publish", "--sample", "loop", "--sample", "healthy").code == 0
    house.settle()
    assert on_kafka("verdicts", "--fail-on", "critical").code == 1
    rows = on_kafka("verdicts", "-o", "ndjson").rows
    blocked = {row["run"]: row["detector"] for row in rows if row["action"] == "block"}
    assert blocked == {
        "sample-same-command": "generic_repeat",
        "sample-stuck-poll": "known_poll_no_progress",
        "sample-ping-pong": "ping_pong",
        "sample-unknown-tool": "unknown_tool_repeat",
    }

    def written() -> bool:
        ended = on_kafka("runs", "list", "--status", "ended", "-o", "ndjson").rows
        return len([row for row in ended if row["run"].startswith("sample-")]) == 6

    wait_for("all runs are written down", written)
    lines = on_kafka("runs", "show", "sample-same-command").out.splitlines()
    assert "status        ended" in lines
    assert "detector      generic_repeat" in lines
    assert "modes         all detectors are enforced" in lines
    Path("own.json").write_text(json.dumps(OWN))
    assert on_kafka("config", "push", "own.json").code == 0
    shown = on_kafka("config", "show", "--agent", "new", "--origin", "-o", "json").json
    modes = {r["detector"]: (r["value"], r["origin"]) for r in shown if r["setting"] == "mode"}
    assert modes["ping_pong"] == ("shadow", "agent new")
    assert modes["generic_repeat"] == ("enforce", "default")
    (healthy,) = on_kafka("runs", "show", "sample-watch-build", "-o", "json").json
    assert (healthy["calls"], healthy["warnings"], healthy["blocks"]) == (10, 0, 0)


@pytest.mark.parametrize("raw", [(), ("--raw",)], ids=["fingerprints", "raw"])
@pytest.mark.timeout(300)
def test_real_runs_are_left_alone_until_they_are_stuck(
    on_kafka: Cli, house: House, raw: tuple[str, ...]
) -> None:
    assert on_kafka("publish", REAL, *raw).code == 0
    house.settle()
    rows = on_kafka("verdicts", "-o", "ndjson").rows
    assert [row for row in rows if row["action"] in {"block", "abort"}] == []

    with gzip.open(REAL, "rt") as lines:
        runs = [stuck(json.loads(line)) for line in lines]
    looping = [run for run in runs if run is not None]
    assert len(looping) == 118
    Path("stuck.jsonl").write_text("\n".join(map(json.dumps, looping)))
    assert on_kafka("publish", "stuck.jsonl", *raw).code == 0
    house.settle()
    rows = on_kafka("verdicts", "-o", "ndjson").rows
    blocked = {row["run"] for row in rows if row["action"] == "block"}
    assert len(blocked) == 118
    assert all(run.startswith("stuck-") for run in blocked)
    assert house.dead_letters() == []
