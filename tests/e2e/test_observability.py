"""A worker as its operators see it: scraped, probed and logged, on the real broker."""

from __future__ import annotations

import gzip
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.house import PARTITIONS, House, Process, actions, open_house, wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture
def watched(bootstrap: str, prefix: str, tmp_path: Path) -> Iterator[House]:
    blocks = {"tools": {"loopDetection": {"enabled": True}}}
    values = {
        "worker.metrics_port": "0",
        "worker.session_timeout_s": "6",
        "log.level": "info",
        "log.format": "json",
    }
    with open_house(bootstrap, prefix, tmp_path, blocks=blocks, values=values) as house:
        yield house


def url(worker: Process) -> str:
    def told() -> re.Match[str] | None:
        return re.search(r"metrics at (http://127\.0\.0\.1:\d+)/metrics", worker.said)

    wait_for(f"the port is told; {worker}", lambda: told() is not None)
    found = told()
    assert found is not None
    return found[1]


def scrape(worker: Process) -> Samples:
    with urlopen(f"{url(worker)}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def probe(worker: Process, path: str) -> int:
    try:
        with urlopen(f"{url(worker)}{path}", timeout=30) as answer:
            return int(answer.status)
    except HTTPError as refused:
        with refused:
            return refused.code


def partitions(samples: Samples, name: str = "loopstream_lag_records") -> set[str]:
    return {dict(labels)["partition"] for found, labels in samples if found == name}


def total(samples: Samples, name: str, **labels: str) -> float:
    wanted = labels.items()
    return sum(
        value
        for (found, has), value in samples.items()
        if found == name and wanted <= dict(has).items()
    )


def loop(house: House, run: str, turns: int) -> None:
    for seq in range(turns):
        about = {"v": 1, "time": 0, "run": run, "agent": "coder", "tool": "exec", "args": '"ls"'}
        house.send_json(
            about | {"type": "tool_call", "epoch": 1, "seq": 2 * seq},
            about | {"type": "tool_outcome", "epoch": 1, "seq": 2 * seq + 1, "result": '"same"'},
        )


def test_what_happens_is_what_is_scraped(watched: House) -> None:
    (worker,) = watched.workers
    loop(watched, "looper", 22)
    loop(watched, "looper", 1)  # seq 0 and 1 once more
    watched.send(b"\xc1", 0)
    said = watched.hear("looper", 3)
    assert {action for action, _, _ in actions(said)} >= {"warn", "block"}
    watched.settle()

    samples = scrape(worker)
    assert total(samples, "loopstream_events_consumed_total") >= 45
    blocks = [verdict for verdict in said if verdict.action == "block"]
    labels = {"detector": "generic_repeat", "action": "block", "mode": "enforce"}
    assert total(samples, "loopstream_verdicts_total", **labels) == len(blocks)
    assert total(samples, "loopstream_events_rejected_total", reason="undecodable") == 1
    assert total(samples, "loopstream_suppressed_total", reason="duplicate") == 2
    assert total(samples, "loopstream_suppressed_total", reason="throttled") >= 9
    assert total(samples, "loopstream_verdict_delay_seconds_count") >= len(said)
    assert total(samples, "loopstream_step_seconds_count") == total(
        samples, "loopstream_records_consumed_total"
    )
    assert total(samples, "loopstream_runs_active") == 2  # and the one that asked at the gate
    assert total(samples, "loopstream_lag_records") == 0
    assert total(samples, "loopstream_partitions_assigned") == PARTITIONS
    assert total(samples, "loopstream_recovery_seconds_count") >= 1
    assert total(samples, "loopstream_checkpoint_seconds_count") >= 1
    assert total(samples, "loopstream_ready") == total(samples, "loopstream_live") == 1
    assert total(samples, "loopstream_build_info", profile="documented", mode="enforce") == 1
    assert (probe(worker, "/livez"), probe(worker, "/readyz")) == (200, 200)
    assert "looper" not in str(samples), "a label has no room for what agents name"

    lines = [json.loads(line) for line in worker.said.splitlines() if line.startswith("{")]
    verdicts = [line for line in lines if line["event"] == "verdict" and line["run"] == "looper"]
    assert len(verdicts) == len(said)
    assert {line["agent"] for line in verdicts} == {"coder"}
    assert {(line["partition"], line["offset"]) for line in verdicts} == {
        (verdict.evidence.partition, verdict.evidence.offset) for verdict in said
    }
    (letter,) = [line for line in lines if line["event"] == "dead letter"]
    assert (letter["topic"], letter["partition"]) == (watched.topics.events, 0)


def test_a_revoked_partitions_series_end_with_the_next_scrape(watched: House) -> None:
    (first,) = watched.workers
    everything = {str(number) for number in range(PARTITIONS)}
    assert partitions(scrape(first)) == everything
    second = watched.start()

    def shared_out() -> bool:
        ours, theirs = partitions(scrape(first)), partitions(scrape(second))
        return bool(ours) and bool(theirs) and ours | theirs == everything and not ours & theirs

    wait_for("the partitions are shared out", shared_out)
    wait_for(f"ready; {first}", lambda: probe(first, "/readyz") == 200)
    wait_for(f"ready; {second}", lambda: probe(second, "/readyz") == 200)
    assert total(scrape(first), "loopstream_rebalances_total") >= 2
    assert partitions(scrape(first), "loopstream_runs_active") == partitions(scrape(first))


def test_no_port_is_opened_unless_one_is_named(bootstrap: str, prefix: str, tmp_path: Path) -> None:
    with open_house(bootstrap, prefix, tmp_path, values={"log.level": "info"}) as house:
        assert "metrics at" not in house.workers[0].said


@pytest.fixture
def collector() -> Iterator[Collector]:
    server = Collector()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


class Collector(ThreadingHTTPServer):
    """An OpenTelemetry collector: takes OTLP over HTTP, and keeps the spans."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), CollectorHandler)
        self.spans: list[Span] = []


class CollectorHandler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        sent = ExportTraceServiceRequest.FromString(body)
        assert isinstance(self.server, Collector)
        self.server.spans += [
            span
            for resource in sent.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_a_verdict_carries_the_trace_of_its_event_on(
    bootstrap: str,
    prefix: str,
    tmp_path: Path,
    collector: Collector,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    endpoint = f"http://127.0.0.1:{collector.server_address[1]}"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
    values = {"worker.traces": "true"}
    with open_house(bootstrap, prefix, tmp_path, values=values) as house:
        call = {"v": 1, "type": "tool_call", "time": 0, "run": "traced", "tool": "t"}
        about = {"disposition": "gated", "traceparent": f"00-{trace}-{parent}-01"}
        house.send_json(call | about)
        (verdict,) = house.hear("traced", 1)
        assert verdict.traceparent == about["traceparent"]
        house.settle()
    (span,) = [span for span in collector.spans if span.trace_id.hex() == trace]
    assert span.parent_span_id.hex() == parent
    assert span.name == "verdict answer"
    assert any(span.name == "checkpoint" for span in collector.spans)
