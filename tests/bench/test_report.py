from __future__ import annotations

from functools import partial
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from benchmarks.kit.results import Result, interleaved, shown
from benchmarks.report import gather, write
from benchmarks.reporting.spec import TABLES
from benchmarks.reporting.tables import markdown
from benchmarks.reporting.targets import TARGETS, rows

SINGLE, FRAMES = "single msgpack", "frames of 50"


@pytest.fixture
def worker() -> Result:
    """Two rounds of ours, Quix and the limit; the second round was half as fast."""
    result = Result("worker", {"events": 10})
    for slow in (1, 2):
        for peer, framing, rate in (
            ("confluent_loop", SINGLE, 200.0),
            ("quix", SINGLE, 40.0),
            ("loopstream_worker", SINGLE, 100.0),
            ("confluent_loop", FRAMES, 400.0),
            ("loopstream_worker", FRAMES, 160.0),
        ):
            sample = {"rate": rate / slow, "verdicts": 3.0}
            result.add(sample, work="streak", framing=framing, peer=peer)
    return result


def test_a_result_is_read_as_it_was_written(worker: Result, tmp_path: Path) -> None:
    worker.skip("kafka_streams", "no JDK")
    worker.series["lag"] = [[0.0, 1.0]]
    assert Result.load(worker.save(tmp_path / "deep" / "worker.json")) == worker


def test_rounds_of_equal_labels_are_one_case(worker: Result) -> None:
    assert len(worker.cases) == 5
    case = worker.case(peer="quix")
    assert case is not None
    assert case.values("rate") == [40.0, 20.0]
    assert case.spread("not measured") is None


def test_the_table_has_ratios_within_rounds_and_what_was_skipped(worker: Result) -> None:
    worker.skip("kafka_streams", "no JDK and Maven")
    text = markdown(worker)
    ours = next(line for line in text.splitlines() if f"{FRAMES} | loopstream_worker" in line)
    heading = next(line for line in text.splitlines() if line.startswith("| work"))
    cells = dict(zip(heading.split("|"), ours.split("|"), strict=True))
    assert cells[" events/s (least to most) "] == " 120 (80 to 160) "
    assert cells[" x limit "] == " 0.40 "
    assert cells[" x Quix, single "] == " 4.00 "
    assert "**Not measured: kafka_streams**: no JDK and Maven." in text
    assert "changelog" not in heading, "no case has that figure"


def test_targets_are_met_missed_or_not_measured(worker: Result) -> None:
    told = {what: (value, met) for what, _, value, met in rows({"worker": worker})}
    assert told["streak, single records: x Quix"] == (2.5, True)
    assert told["streak, frames of 50: x limit"] == (0.4, False)
    assert told["streak, single records: x Kafka Streams"] == (None, None)


def test_most_and_least_are_not_mixed_up() -> None:
    delay = next(target for target in TARGETS if target.most)
    rate = next(target for target in TARGETS if not target.most)
    assert delay.met(delay.bound / 2)
    assert not delay.met(delay.bound * 2)
    assert rate.met(rate.bound * 2)
    assert not rate.met(rate.bound / 2)


def test_the_report_is_written_with_plots_and_data(worker: Result, tmp_path: Path) -> None:
    scale = Result("scale")
    for order in ("in turn", "bursts"):
        for runs in ("1,000", "1,000,000"):
            scale.add({"rate": 10.0}, order=order, runs=runs)
    docs = tmp_path / "docs"
    write({"worker": worker, "scale": scale}, docs)
    text = (docs / "report.md").read_text(encoding="utf-8")
    assert "| streak, single records: x Quix | at least 2 | 2.50 | yes |" in text
    for plot in ("worker-streak.svg", "scale.svg"):
        assert f"({plot})" in text
        ET.fromstring((docs / plot).read_text(encoding="utf-8"))
    assert Result.load(docs / "data" / "worker.json") == worker


def test_a_newer_result_replaces_the_kept_one(worker: Result, tmp_path: Path) -> None:
    worker.made = "2026-01-02T00:00:00+00:00"
    worker.save(tmp_path / "kept" / "worker.json")
    older = Result("worker", made="2026-01-01T00:00:00+00:00")
    older.save(tmp_path / "fresh" / "worker.json")
    assert gather(tmp_path / "fresh", tmp_path / "kept") == {"worker": worker}
    older.made = "2026-01-03T00:00:00+00:00"
    older.save(tmp_path / "fresh" / "worker.json")
    assert gather(tmp_path / "fresh", tmp_path / "kept") == {"worker": older}


def test_rounds_are_interleaved() -> None:
    seen: list[str] = []

    def note(name: str, turn: int) -> None:
        seen.append(f"{name}{turn}")

    interleaved(2, {name: partial(note, name) for name in ("a", "b")})
    assert seen == ["a0", "b0", "a1", "b1"]


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (0.01234, "0.0123"), (2.346, "2.35"), (45.67, "45.7")]
)
def test_figures_have_the_digits_that_they_deserve(value: float, text: str) -> None:
    assert shown(value) == text
    assert shown(1_234_567.8) == "1,234,568"


def test_every_benchmark_has_one_table() -> None:
    names = [table.benchmark for table in TABLES]
    assert len(names) == len(set(names))
