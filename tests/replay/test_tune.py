from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from loopstream.errors import UsageError
from loopstream.events import EVENT
from loopstream.policy.settings import resolve
from loopstream.policy.verdicts import Position
from loopstream.replay.cases import Case, splice
from loopstream.replay.tune import DEFAULT_GRID, best, grid_of, play, tune
from tests.cli.conftest import Cli
from tests.conftest import SHARED
from tests.replay.traffic import Teller, healthy, interleaved, looping

REAL = SHARED / "real" / "runs.jsonl.gz"


def case(name: str, events: list[dict[str, Any]], *onsets: int) -> Case:
    told: list[Any] = [EVENT.validate_python(event) for event in events]
    placed = tuple((event, Position(0, at, 0, at)) for at, event in enumerate(told))
    return Case(name, "tester", placed, onsets)


def block(critical: int, warning: int = 3) -> dict[str, Any]:
    return {"enabled": True, "warningThreshold": warning, "criticalThreshold": critical}


def test_a_loop_is_stopped_at_its_threshold_and_the_delay_counts_from_its_begin() -> None:
    # Two calls of work, then the loop: it begins with the third call.
    cases = [case("loop", looping("loop"), 3), case("fine", healthy("fine"))]
    early, late = tune(cases, [block(5), block(12)])
    assert (early.recall, early.precision, early.delay) == (1.0, 1.0, 4)
    assert (late.recall, late.delay) == (1.0, 11)
    assert best([late, early]) is early


def test_a_good_run_that_is_stopped_is_a_false_stop() -> None:
    polls = case("patient", looping("patient", turns=8))
    strict, lax = tune([polls, case("loop", looping("loop"), 3)], [block(5), block(12)])
    assert strict.false_runs == ["patient"]
    assert strict.false_stops_per_1000 == 1000
    assert strict.precision == 0.5
    assert lax.false_runs == []
    assert best([strict, lax]) is lax


def test_a_stop_before_the_loop_is_no_detection() -> None:
    (point,) = tune([case("loop", looping("loop"), 20)], [block(5)])
    assert (point.early, point.detected, point.recall) == (1, 0, 0.0)
    assert point.precision == 0.0


def test_after_a_recorded_refusal_nobody_knows() -> None:
    teller = Teller("r")
    events = [teller.event("run_started")]
    for _ in range(6):
        events += teller.turn("exec", {}, "no")
    events.append(teller.call("exec", {}, disposition="refused"))
    for _ in range(20):
        events += teller.turn("exec", {}, "no")
    before, after = tune([case("r", events, 1)], [block(5), block(10)])
    assert (before.censored, before.recall) == (0, 1.0)
    assert (after.censored, after.episodes, after.recall) == (1, 0, None)


def test_a_spliced_loop_begins_where_it_says() -> None:
    good = case("good", healthy("good", turns=10))
    for length in (1, 2, 3):
        made = splice(good, length)
        assert made is not None
        assert made.onsets == (6,)
        calls = [event for event, _ in made.events if event.type == "tool_call"]
        digests = [call.fp.documented.args for call in calls]  # type: ignore[union-attr]
        assert digests[5 : 5 + length] == digests[5 - length : 5]
        assert len(set(digests)) == 5
        assert play(made, resolve(block(9))).stops[0] > made.onsets[0]


def test_runs_too_short_or_repetitive_are_not_spliced() -> None:
    assert splice(case("tiny", healthy("tiny", turns=2)), 3) is None
    assert splice(case("same", looping("same", turns=20)), 2) is None


def test_grids_are_every_combination() -> None:
    found = grid_of(["criticalThreshold=10,20", "detectors.pingPong=true,false"])
    assert len(found) == 4
    assert {"enabled": True, "criticalThreshold": 20, "detectors": {"pingPong": False}} in found


@pytest.mark.parametrize("values", ["3,5,10,20,30,80", "1"])
@pytest.mark.parametrize("key", ["criticalThreshold", "warningThreshold"])
def test_what_is_recommended_is_what_would_be_in_force(key: str, values: str) -> None:
    given = [f"{key}={values}"]
    if (key, values) == ("criticalThreshold", "1"):
        with pytest.raises(UsageError, match="contradicts itself"):
            grid_of(given)
        return
    for made in (*grid_of(given), *DEFAULT_GRID):
        limits = resolve(made)
        shown = {
            "warningThreshold": limits.warning,
            "criticalThreshold": limits.critical,
            "globalCircuitBreakerThreshold": limits.breaker,
        }
        assert {name: made.get(name, shown[name]) for name in shown} == shown
    contradicting = ["criticalThreshold=5,15", "warningThreshold=4,10"]
    assert [(b["warningThreshold"], b["criticalThreshold"]) for b in grid_of(contradicting)] == [
        (4, 5),
        (4, 15),
        (10, 15),
    ]


def test_where_nothing_loops_there_is_no_precision() -> None:
    (point,) = tune([case("patient", looping("patient"))], [block(5)])
    assert len(point.false_runs) == 1
    assert (point.precision, point.recall) == (None, None)


@pytest.mark.parametrize("text", ["criticalThreshold", "x=1", "criticalThreshold=a", "a.b=1",
                                  "historySize=90000"])  # fmt: skip
def test_a_grid_of_nonsense_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--grid"):
        grid_of([text])


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_how_many_good_real_runs_each_threshold_would_have_stopped(
    cli: Cli, tmp_path: Path
) -> None:
    out = tmp_path / "tuned.json"
    grid = ("--grid", "criticalThreshold=4,10,20", "--grid", "warningThreshold=3")
    said = cli("tune", "--recorded", REAL, "--splice", *grid, "--out", out)
    assert said.code == 0, said.err
    low, middle, high = json.loads(out.read_text())["grid"]
    assert [row["good_runs"] for row in (low, middle, high)] == [127] * 3
    # These runs hold no loops: whoever stops one at 4 equal results stops work.
    assert low["false_stops"] > 0
    assert middle["false_stops"] == high["false_stops"] == 0
    assert low["false_stops_per_1000"] == round(1000 * low["false_stops"] / 127, 2)
    assert middle["recall_by_kind"]["spliced-1"] == high["recall_by_kind"]["spliced-1"] == 1
    # Three calls in turns: a history of 30 never holds twenty equal results of one.
    assert high["recall_by_kind"]["spliced-3"] == 0
    assert low["delay_calls"] < middle["delay_calls"] < high["delay_calls"]
    assert '"loopDetection"' in said.out
    report = cli("report", "--file", tmp_path / "none", "--tuned", out)
    assert report.code == 5


def test_tuning_needs_something_to_go_by(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "e.jsonl"
    file.write_text("")
    assert "no labels" in cli("tune", file).err
    assert cli("tune", file, "--splice").code == 2
    assert cli("tune", "--recorded", "nowhere.jsonl", "--splice").code == 5


@pytest.mark.kafka
@pytest.mark.timeout(240)
def test_labels_are_kept_and_tuned_by(on_kafka: Cli, cluster: Any, tmp_path: Path) -> None:
    on = tmp_path / "on.json"
    on.write_text('{"enabled": true, "warningThreshold": 3, "criticalThreshold": 6}')
    assert on_kafka("config", "push", on).code == 0
    patient = looping("patient", turns=8)
    cluster.send(interleaved([looping("stuck"), patient, healthy("fine")]), frame=3)
    worker = cluster.worker()
    cluster.wait_judged(["stuck", "patient"])
    cluster.stop(worker)
    nothing = on_kafka("tune")
    assert nothing.code == 4, "no label was ever given: there is no such topic"
    blocks: dict[str, str] = {}
    for verdict in cluster.verdicts():
        if verdict.action == "block":
            blocks.setdefault(verdict.run, verdict.id)
    said = on_kafka("label", blocks["stuck"], "right", "--note", "make never changes")
    assert said.code == 0, said.err
    assert "created" in said.err
    assert on_kafka("label", blocks["patient"], "right").code == 0
    assert on_kafka("label", blocks["patient"][:12], "wrong", "--by", "me").code == 0
    tuned = on_kafka("tune", "--grid", "criticalThreshold=6,12", "--grid", "warningThreshold=3",
                     "-o", "json")  # fmt: skip
    assert tuned.code == 0, tuned.err
    strict, lax = tuned.json["grid"]
    assert (strict["episodes"], strict["detected"], strict["false_stops"]) == (1, 1, 1)
    assert (lax["detected"], lax["false_stops"]) == (1, 0)
    assert strict["delay_calls"] == 5
    assert tuned.json["settings"]["tools"]["loopDetection"]["criticalThreshold"] == 12
    for name, complaint in (("0" * 32, "no such verdict"), ("abc", "at least 6")):
        refused = on_kafka("label", name, "right")
        assert (refused.code, complaint in refused.err) == (2, True)
    assert on_kafka("label", blocks["stuck"], "none").code == 0
    assert on_kafka("label", blocks["patient"], "none").code == 0
    gone = on_kafka("tune")
    assert (gone.code, "no run to try" in gone.err) == (2, True)


def test_the_figures_are_plotted_in_the_report(cli: Cli, tmp_path: Path) -> None:
    points = tune([case("loop", looping("loop"), 3)], [block(5), block(12)])
    tuned = tmp_path / "tuned.json"
    figures = {"grid": [point.as_dict() for point in points], "settings": dict(points[0].block)}
    tuned.write_text(json.dumps(figures))
    empty = tmp_path / "e.jsonl"
    empty.write_text("")
    out = tmp_path / "r.html"
    assert cli("report", "--file", empty, "--tuned", tuned, "--out", out).code == 0
    html = out.read_text()
    assert html.count("<polyline") == 3
    assert "Settings to paste" in html
