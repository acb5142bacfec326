from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from loopstream.errors import SettingsError
from loopstream.events import RejectCode
from loopstream.runtime.endpoint import Endpoint
from loopstream.runtime.health import SILENCE_S, Health
from loopstream.runtime.lanes import Lanes
from loopstream.runtime.measures import Histogram, Measures
from loopstream.runtime.metrics import METRICS, Exposition
from loopstream.runtime.stats import Stats
from tests.runtime.conftest import Bench


@dataclass
class Seen:
    """A worker to be read: what `Monitor` is on a real one."""

    stats: Stats = field(default_factory=Stats)
    lanes: Lanes = field(default_factory=Lanes)
    ends: dict[int, int] = field(default_factory=dict)

    def build(self) -> tuple[str, str]:
        return "documented", "enforce"

    def lags(self) -> list[tuple[int, int]]:
        return [(lane.number, self.ends[lane.number] - lane.next_offset) for lane in self.lanes]

    def levels(self) -> tuple[int, int, float]:
        return 7, 3, 0.0

    def healthy(self) -> tuple[bool, bool]:
        return True, False


def scraped(seen: Seen) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    text = Exposition(seen).text().decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@given(st.lists(st.floats(0, 100), max_size=50))
def test_a_histogram_counts_what_is_at_or_below_each_bound(values: list[float]) -> None:
    seen = Histogram((1.0, 10.0, 50.0))
    for value in values:
        seen.observe(value)
    for bound, count in seen.buckets():
        assert count == sum(value <= float(bound) for value in values)
    assert seen.count == len(values)
    assert seen.sum == pytest.approx(sum(values))


def test_every_name_is_ours_told_once_and_explained() -> None:
    names = [metric.full_name for metric in METRICS]
    assert len(set(names)) == len(names)
    for metric in METRICS:
        assert re.fullmatch(r"loopstream_[a-z_]+", metric.full_name)
        assert metric.help.endswith(".")
        if metric.kind == "histogram":
            assert metric.name.endswith(("_seconds", "_bytes"))


def test_labels_are_bounded() -> None:
    """No run, no tool, no reason text: nothing that an agent can make more of."""
    labels = {label for metric in METRICS for label in metric.labels}
    assert labels == {
        *("partition", "reason", "note", "detector", "action", "mode"),
        *("version", "faust", "python", "engine", "profile"),
    }


def test_what_is_scraped_is_what_was_counted() -> None:
    seen = Seen()
    seen.stats.records, seen.stats.rejects[RejectCode.UNDECODABLE] = 5, 2
    seen.stats.notes.update({"applied": 9, "duplicate": 4, "throttled": 1, "gap": 3})
    seen.stats.measures.verdicts["generic_repeat", "block", "enforce"] += 6
    seen.stats.measures.step_seconds.observe(0.00001, 5)
    values = scraped(seen)
    assert values["loopstream_records_consumed_total", ()] == 5
    assert values["loopstream_events_consumed_total", ()] == 9
    assert values["loopstream_events_rejected_total", (("reason", "undecodable"),)] == 2
    assert values["loopstream_events_rejected_total", (("reason", "misrouted"),)] == 0
    assert values["loopstream_suppressed_total", (("reason", "duplicate"),)] == 4
    assert values["loopstream_suppressed_total", (("reason", "throttled"),)] == 1
    assert values["loopstream_events_noted_total", (("note", "gap"),)] == 3
    kind = (("action", "block"), ("detector", "generic_repeat"), ("mode", "enforce"))
    assert values["loopstream_verdicts_total", kind] == 6
    assert values["loopstream_step_seconds_count", ()] == 5
    assert values["loopstream_records_buffered", ()] == 7
    assert (values["loopstream_live", ()], values["loopstream_ready", ()]) == (1, 0)
    assert any(name == "loopstream_build_info" for name, _ in values)
    assert any(name == "process_cpu_seconds_total" for name, _ in values)


async def test_the_series_of_a_revoked_partition_end(bench: Bench) -> None:
    seen = Seen(lanes=bench.core.lanes, ends={0: 10, 1: 10})
    for number in (0, 1):
        bench.lane(number)
    assert scraped(seen)["loopstream_lag_records", (("partition", "1"),)] == 10
    seen.lanes.clear()
    left = [name for name, labels in scraped(seen) if ("partition", "1") in labels]
    assert left == []


@pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool here")
def test_promtool_has_nothing_to_say() -> None:
    seen = Seen()
    seen.stats.measures.verdicts["ping_pong", "warn", "shadow"] += 1
    text = Exposition(seen).text()
    ours = b"\n".join(line for line in text.splitlines() if b"loopstream_" in line) + b"\n"
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=ours, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")


def test_recovery_is_timed_from_loss_to_opening() -> None:
    measures = Measures()
    measures.partitions_open()
    measures.partitions_open()
    assert measures.recovery_seconds.count == 1
    measures.partitions_lost()
    measures.partitions_lost()
    measures.partitions_open()
    assert measures.recovery_seconds.count == 2


async def test_slices_rows_verdicts_and_checkpoints_are_measured(bench: Bench) -> None:
    bench.lane(0)
    sender = asyncio.create_task(bench.core.outbox.run())
    await bench.feed(*([["r", number]] for number in range(25)))
    measures = bench.core.stats.measures
    assert measures.step_seconds.count == 25
    assert measures.verdicts.total() == bench.core.stats.verdicts > 0
    while len(bench.to(".verdicts")) < bench.core.stats.verdicts:
        await asyncio.sleep(0)
    assert measures.verdict_delay_seconds.count == 0
    bench.confirm(".verdicts")
    assert await bench.core.checkpointer.take()
    assert measures.verdict_delay_seconds.count == bench.core.stats.verdicts
    assert measures.row_bytes.count == bench.core.stats.rows > 0
    assert measures.checkpoint_seconds.count == 1
    sender.cancel()


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_alive_while_anything_moves() -> None:
    clock, ready = Clock(), [False]
    health = Health(30.0, lambda: ready[0], clock)
    for second in range(100):
        clock.now += 1
        health.observe(second, waiting=True)
        assert health.live().ok
    for _ in range(31):
        assert health.live().ok
        clock.now += 1
        health.observe("stuck", waiting=True)
    clock.now += 1
    health.observe("stuck", waiting=True)
    assert "nothing moved" in health.live().reason
    health.observe("stuck", waiting=False)
    assert health.live().ok


def test_a_silent_event_loop_is_dead() -> None:
    clock = Clock()
    health = Health(300.0, lambda: True, clock)
    clock.now += SILENCE_S + 1
    assert "silent" in health.live().reason


def test_the_port_answers_and_ends() -> None:
    ready = [False]
    endpoint = Endpoint("127.0.0.1", 0, Exposition(Seen()), Health(30.0, lambda: ready[0]))
    endpoint.start()
    base = f"http://127.0.0.1:{endpoint.port}"
    try:
        with urlopen(f"{base}/metrics") as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=")
            assert b"loopstream_records_consumed_total 0.0" in answer.read()
        with urlopen(f"{base}/livez?verbose") as answer:
            assert answer.read() == b"live\n"
        for path, status in (("/readyz", 503), ("/other", 404)):
            with pytest.raises(HTTPError) as refused:
                urlopen(base + path)
            with refused.value as answer:
                assert answer.status == status
        ready[0] = True
        with urlopen(f"{base}/readyz") as answer:
            assert answer.status == 200
    finally:
        endpoint.close()


def test_a_port_that_is_taken_is_told_of() -> None:
    exposition, health = Exposition(Seen()), Health(30.0, lambda: True)
    endpoint = Endpoint("127.0.0.1", 0, exposition, health)
    try:
        with pytest.raises(SettingsError, match=r"worker\.metrics_port 127"):
            Endpoint("127.0.0.1", endpoint.port, exposition, health)
    finally:
        endpoint.server_close()
