"""Says in the log, and in traces, what a worker decided and what it could not use."""

from __future__ import annotations

import logging
from typing import Any, Final, Protocol

from loopstream.errors import SettingsError
from loopstream.events import DeadLetter, Verdict
from loopstream.runtime.topics import Topics

log: Final = logging.getLogger("loopstream.worker")


class Tracer(Protocol):
    """What `loopstream.runtime.tracing` offers."""

    def verdict(self, verdict: Verdict) -> None:
        """A verdict was decided."""
        ...

    def checkpoint(self, seconds: float, rows: int, partitions: int) -> None:
        """A checkpoint ended just now."""
        ...

    def close(self) -> None:
        """Send what is left."""
        ...


class Reporter:
    """One log line and one span per verdict, one log line per dead letter.

    A line has the keys run, agent, topic, partition and offset in the JSON form, where they apply.
    Reasons and tool names stay out: strangers wrote them, and the verdict has them.

    Args:
        topics: of the deployment.
        traces: whether spans go out.

    Raises:
        SettingsError: traces are asked for, and the extra ``otel`` is not installed.
    """

    def __init__(self, topics: Topics, *, traces: bool = False) -> None:
        self._topics = topics
        self._tracer = _tracer() if traces else None

    def verdict(self, verdict: Verdict) -> None:
        """A verdict is on its way."""
        if log.isEnabledFor(logging.INFO):
            where: dict[str, Any] = {
                "run": verdict.run,
                "agent": verdict.agent,
                "topic": self._topics.events,
                "partition": verdict.evidence.partition,
                "offset": verdict.evidence.offset,
                "detector": verdict.detector,
                "action": verdict.action.value,
                "mode": verdict.mode,
                "verdict": verdict.id,
            }
            log.info("verdict", extra=where)
        if self._tracer is not None:
            self._tracer.verdict(verdict)

    def dead_letter(self, letter: DeadLetter) -> None:
        """A record or event was refused."""
        if log.isEnabledFor(logging.INFO):
            where = {
                "topic": letter.topic,
                "partition": letter.partition,
                "offset": letter.offset,
                "index": letter.index,
                "code": letter.code.value,
            }
            log.info("dead letter", extra=where)

    def checkpoint(self, seconds: float, rows: int, partitions: int) -> None:
        """A checkpoint ended just now."""
        if self._tracer is not None:
            self._tracer.checkpoint(seconds, rows, partitions)

    def close(self) -> None:
        """Send the spans that are left."""
        if self._tracer is not None:
            self._tracer.close()


def _tracer() -> Tracer:
    try:
        from loopstream.runtime.tracing import OtlpTracer  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        hint = "Install it with: pip install 'loopstream[otel]'"
        message = f"traces need the module {error.name}."
        raise SettingsError(message, where="worker.traces", hint=hint) from None
    return OtlpTracer()
