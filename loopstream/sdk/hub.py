"""What a runner has one of: its live runs, its outbox, its knowledge of the link to Kafka."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable
from typing import Final

from loopstream.errors import DataError, UsageError
from loopstream.sdk.counters import Complaints, Counters
from loopstream.sdk.names import bounded_id
from loopstream.sdk.options import Options
from loopstream.sdk.outbox import Outbox
from loopstream.sdk.ports import Record
from loopstream.sdk.scribe import Scribe
from loopstream.sdk.session import Kit, RunSession, Status
from loopstream.sdk.stream import Stream
from loopstream.wire.routing import scope_key
from loopstream.wire.signing import is_signed_verdict
from loopstream.wire.verdicts import decode_verdict

log: Final = logging.getLogger("loopstream.sdk")

# A frame that has been on its way for longer says that Kafka is not well.
STALL_S: Final = 5.0

_keyless_told = threading.Event()


class Link:
    """Whether the two threads of a runner have a working connection.

    Attributes:
        sending: the sender has.
        reading: the reader has.
    """

    def __init__(self) -> None:
        self.sending = False
        self.reading = False


class Hub:
    """The runner without its threads. Safe to use from any thread.

    Args:
        options: the runner's settings.
        clock: monotonic seconds.
        now_ms: the wall clock, in ms since the epoch.
    """

    def __init__(
        self, options: Options, clock: Callable[[], float], now_ms: Callable[[], int]
    ) -> None:
        self.options = options
        self.counters = Counters()
        self.complaints = Complaints(clock)
        self.link = Link()
        self.outbox = Outbox(
            clock,
            max_bytes=options.max_buffer_bytes,
            max_events=options.max_buffer_events,
            linger=options.linger_ms / 1000,
            on_lost=self._lost,
        )
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._runs: dict[str, RunSession] = {}
        self._epoch = 0
        printer = options.printer()
        self._kit = Kit(
            options,
            Scribe(options, printer, self.counters, self.complaints),
            self.outbox,
            self.counters,
            now_ms,
            lambda: self.healthy,
        )
        if printer.key is None and not _keyless_told.is_set():
            _keyless_told.set()
            log.warning(
                "No key: digests are plain SHA-256, which lets short arguments be guessed. "
                "Give Runner(key=...) a secret of your tenant."
            )

    @property
    def healthy(self) -> bool:
        """Whether events go out and verdicts come in, as far as is known."""
        return self.link.sending and self.link.reading and not self.outbox.stalled(STALL_S)

    def begin(
        self,
        run: str | None,
        *,
        session: str | None,
        resumed: bool,
        trace: str | None,
        parent_run: str | None,
        root_run: str | None,
        traceparent: str | None,
    ) -> RunSession:
        """Begin a run, or take one up again.

        Raises:
            UsageError: the run is live in this runner already.
        """
        options = self.options
        session = _bounded(session if session is not None else options.session)
        scope = scope_key(_bounded(run), session)
        if scope is None:
            run = str(uuid.uuid4())
            scope = run
        envelope = {
            "run": _bounded(run),
            "agent": _bounded(options.agent),
            "session": session,
            "runner": options.runner_id,
            "trace": _bounded(trace),
            "parent_run": _bounded(parent_run),
            "root_run": _bounded(root_run),
            "traceparent": None if traceparent is None else traceparent[:64],
        }
        with self._lock:
            if scope in self._runs:
                raise UsageError(
                    f"run {run!r} is live in this runner already.",
                    hint="End it first, or give the new one another id.",
                )
            # By the wall clock, so that it rises over restarts too; never twice the same.
            self._epoch = max(self._now_ms(), self._epoch + 1)
            live = RunSession(self._kit, Stream(scope, self._epoch, envelope), envelope["run"])
            self._runs[scope] = live
        self.outbox.join(live.stream)
        live.started(resumed)
        return live

    def finish(self, live: RunSession, status: Status, reason: str | None) -> None:
        """End a run: nothing is read for it any more."""
        if live.end(status, reason):
            self.outbox.leave(live.stream)
            with self._lock:
                self._runs.pop(live.stream.scope, None)

    def deliver(self, record: Record) -> None:
        """Hand a record of the verdict topic to its run, if that is one of ours."""
        if record.key is not None and self._run_of(record.key) is None:
            return
        try:
            verdict = decode_verdict(record.value, record.content_type)
        except DataError as error:
            self.counters.add("verdicts_undecodable")
            self.complaints.say(
                "verdict",
                "A record of the verdict topic is no verdict: partition %d, offset %d: %s",
                record.partition,
                record.offset,
                error.message,
            )
            return
        with self._lock:
            live = self._runs.get(verdict.scope)
        if live is None:
            return
        if not self._signed(verdict.scope, record):
            self.counters.add("verdicts_unsigned")
            self.complaints.say(
                "signature",
                "A verdict on one of our runs is not signed by a worker: partition %d, offset %d.",
                record.partition,
                record.offset,
            )
            return
        live.receive(verdict)

    @property
    def live(self) -> int:
        """How many runs have begun and not ended."""
        with self._lock:
            return len(self._runs)

    def _signed(self, scope: str, record: Record) -> bool:
        keys, value = self.options.signing_keys, record.value or b""
        return not keys or is_signed_verdict(keys, scope, value, record.key_id, record.signature)

    def _run_of(self, key: bytes) -> RunSession | None:
        with self._lock:
            return self._runs.get(key.decode("utf-8", "replace"))

    def _lost(self, count: int) -> None:
        self.counters.add("events_dropped", count)
        self.complaints.say("buffer", "The buffer is full: the oldest events are dropped.")


def _bounded(text: str | None) -> str | None:
    return None if text is None else bounded_id(text)
