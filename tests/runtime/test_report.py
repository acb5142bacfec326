from __future__ import annotations

import json
import logging
import logging.config
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from loopstream.config.logs import logging_config
from loopstream.events import Action, DeadLetter, Evidence, Level, RejectCode, Verdict
from loopstream.runtime.report import Reporter
from loopstream.runtime.topics import Topics
from loopstream.runtime.tracing import OtlpTracer

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def verdict(**more: Any) -> Verdict:
    fields: dict[str, Any] = {
        "id": f"{1:032x}",
        "seq": 1,
        "scope": "r1",
        "run": "r1",
        "agent": "coder",
        "action": Action.BLOCK,
        "level": Level.CRITICAL,
        "detector": "ping_pong",
        "count": 20,
        "threshold": 20,
        "tool": "exec",
        "key": "pingpong:a:b",
        "reason": "secret words of a stranger",
        "evidence": Evidence(event="e9", partition=3, offset=77),
        "profile": "documented",
        "settings": "0123456789abcdef",
        "event_time": 1_000,
        "append_time": 2_000,
    }
    return Verdict(**(fields | more))


LETTER = DeadLetter(
    code=RejectCode.UNDECODABLE,
    topic="p.events",
    partition=1,
    offset=5,
    index=-1,
    sha256=bytes(32),
    append_time=1,
    sample=b"secret words of a stranger",
)


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    logging.root.handlers[:], logging.root.level = handlers, level


def test_json_lines_name_run_agent_topic_partition_and_offset(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logging.config.dictConfig(logging_config("INFO", "json"))
    reporter = Reporter(Topics("p"))
    reporter.verdict(verdict())
    reporter.dead_letter(LETTER)
    reporter.close()
    err = capsys.readouterr().err
    first, second = (json.loads(line) for line in err.splitlines())
    assert first["event"] == "verdict"
    assert (first["run"], first["agent"]) == ("r1", "coder")
    assert (first["topic"], first["partition"], first["offset"]) == ("p.events", 3, 77)
    assert (first["detector"], first["action"], first["mode"]) == ("ping_pong", "block", "enforce")
    assert (second["event"], second["code"]) == ("dead letter", "undecodable")
    assert (second["topic"], second["partition"], second["offset"]) == ("p.events", 1, 5)
    assert "secret" not in err


def test_nothing_is_said_above_the_level(capsys: pytest.CaptureFixture[str]) -> None:
    logging.config.dictConfig(logging_config("WARNING", "json"))
    Reporter(Topics("p")).verdict(verdict())
    assert capsys.readouterr().err == ""


@pytest.fixture
def spans() -> tuple[OtlpTracer, InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    return OtlpTracer(SimpleSpanProcessor(exporter)), exporter


def test_a_verdicts_span_belongs_to_the_trace_of_its_event(
    spans: tuple[OtlpTracer, InMemorySpanExporter],
) -> None:
    tracer, exporter = spans
    tracer.verdict(verdict(traceparent=f"00-{TRACE}-{PARENT}-01"))
    (span,) = exporter.get_finished_spans()
    context, parent = span.get_span_context(), span.parent
    assert context is not None
    assert parent is not None
    assert format(context.trace_id, "032x") == TRACE
    assert format(parent.span_id, "016x") == PARENT
    assert span.name == "verdict block"
    assert span.start_time == 2_000 * 1_000_000
    assert span.attributes is not None
    assert span.attributes["gen_ai.agent.id"] == "coder"
    assert span.attributes["gen_ai.tool.name"] == "exec"
    assert span.attributes["messaging.kafka.offset"] == 77
    assert "secret" not in str(dict(span.attributes))


@pytest.mark.parametrize("traceparent", [None, "nonsense", f"00-{'0' * 32}-{PARENT}-01"])
def test_without_a_usable_trace_it_starts_one(
    spans: tuple[OtlpTracer, InMemorySpanExporter], traceparent: str | None
) -> None:
    tracer, exporter = spans
    tracer.verdict(verdict(traceparent=traceparent))
    (span,) = exporter.get_finished_spans()
    assert span.parent is None


def test_a_checkpoint_has_a_span(spans: tuple[OtlpTracer, InMemorySpanExporter]) -> None:
    tracer, exporter = spans
    tracer.checkpoint(0.25, 12, 3)
    tracer.close()
    (span,) = exporter.get_finished_spans()
    assert span.start_time is not None
    assert span.end_time is not None
    assert span.end_time - span.start_time == 250_000_000
    assert dict(span.attributes or {}) == {"loopstream.rows": 12, "loopstream.partitions": 3}
