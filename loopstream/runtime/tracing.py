"""OpenTelemetry spans over OTLP: one per verdict, in the trace of its event, one per checkpoint.

Where they go is said by the ``OTEL_EXPORTER_OTLP_*`` variables. Needs the extra ``otel``.
"""

from __future__ import annotations

import time
from typing import Final

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from loopstream import __version__
from loopstream.events import Verdict

_FLUSH_MS: Final = 2000
_PROPAGATOR: Final = TraceContextTextMapPropagator()


class OtlpTracer:
    """Sends spans in the background; a collector that is away costs spans, never events.

    Args:
        processor: where ended spans go; None: in batches to the OTLP endpoint.
    """

    def __init__(self, processor: SpanProcessor | None = None) -> None:
        resource = Resource.create({"service.name": "loopstream", "service.version": __version__})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(processor or BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("loopstream.worker", __version__)

    def verdict(self, verdict: Verdict) -> None:
        """A span from the event's append to now, child of the span that the event names."""
        attributes = {
            "loopstream.verdict.id": verdict.id,
            "loopstream.action": verdict.action.value,
            "loopstream.detector": verdict.detector,
            "loopstream.count": verdict.count,
            "loopstream.mode": verdict.mode,
            "messaging.system": "kafka",
            "messaging.destination.partition.id": str(verdict.evidence.partition),
            "messaging.kafka.offset": verdict.evidence.offset,
        }
        named = {
            "loopstream.run": verdict.run,
            "gen_ai.agent.id": verdict.agent,
            "gen_ai.conversation.id": verdict.session,
            "gen_ai.tool.name": verdict.tool,
        }
        attributes |= {name: value for name, value in named.items() if value is not None}
        now = time.time_ns()
        span = self._tracer.start_span(
            f"verdict {verdict.action.value}",
            context=_context(verdict.traceparent),
            kind=SpanKind.CONSUMER,
            attributes=attributes,
            start_time=min(now, verdict.append_time * 1_000_000),
        )
        span.end(now)

    def checkpoint(self, seconds: float, rows: int, partitions: int) -> None:
        """A span of its own trace."""
        now = time.time_ns()
        span = self._tracer.start_span(
            "checkpoint",
            context=Context(),
            attributes={"loopstream.rows": rows, "loopstream.partitions": partitions},
            start_time=now - int(seconds * 1e9),
        )
        span.end(now)

    def close(self) -> None:
        """Send what is left, within two seconds."""
        self._provider.force_flush(_FLUSH_MS)
        self._provider.shutdown()


def _context(traceparent: str | None) -> Context:
    carrier = {} if traceparent is None else {"traceparent": traceparent}
    return _PROPAGATOR.extract(carrier, Context())
