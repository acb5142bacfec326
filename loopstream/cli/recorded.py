"""Recorded runs: one JSON object a line, and the events that they become.

The form is described in ``docs/reference/recorded-runs.md``.
"""

from __future__ import annotations

import gzip
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import IO, Any, Final, Literal, NoReturn

from pydantic import ValidationError

from loopstream.errors import DataError
from loopstream.events import EVENT, SCHEMA_VERSION
from loopstream.events.text import trim
from loopstream.fingerprint.canonical import MISSING
from loopstream.sdk.capture import sendable
from loopstream.sdk.names import bounded_id, tool_name
from loopstream.sdk.prints import Printer
from loopstream.sdk.values import NOTHING, Json, to_json

MAX_LINE_BYTES: Final = 64 * 1024 * 1024
HINT: Final = "The form of recorded runs is described in docs/reference/recorded-runs.md."
RUNNER: Final = "loopstream-publish"
"""Id of the runner that all published runs have."""
_GZIP: Final = b"\x1f\x8b"

Fields = dict[str, Any]
Status = Literal["completed", "failed", "aborted", "cancelled"]


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """One line: a run's id and its steps in order."""

    run: str
    steps: list[Fields]
    status: Status
    where: str


def read_runs(raw: IO[bytes], name: str) -> Iterator[RecordedRun]:
    """Read recorded runs, plain or gzipped, line by line.

    Args:
        raw: the file's bytes.
        name: what to call the file in errors.

    Raises:
        DataError: a line is no recorded run, or longer than 64 MiB.
    """
    buffered = io.BufferedReader(raw) if isinstance(raw, io.RawIOBase) else raw
    head = buffered.read(2)
    buffered.seek(0)
    lines = gzip.GzipFile(fileobj=buffered) if head == _GZIP else buffered
    number = 0
    try:
        while line := lines.readline(MAX_LINE_BYTES + 1):
            number += 1
            if len(line) > MAX_LINE_BYTES:
                raise DataError(f"over {MAX_LINE_BYTES} bytes.", where=f"{name}:{number}")
            if line.strip():
                yield _run(line, f"{name}:{number}")
    except (OSError, EOFError) as error:
        raise DataError(f"can't be read: {error}.", where=f"{name}:{number + 1}") from error


def unique(runs: Iterable[RecordedRun]) -> Iterator[RecordedRun]:
    """Runs under ids of their own: the second of the same id becomes ``id#2``."""
    seen: Counter[str] = Counter()
    for recorded in runs:
        name = trim(recorded.run)
        seen[name] += 1
        times = seen[name]
        yield recorded if times == 1 else replace(recorded, run=f"{name}#{times}")


def _run(line: bytes, where: str) -> RecordedRun:
    try:
        fields = json.loads(line, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise DataError(f"not JSON ({type(error).__name__}).", where=where, hint=HINT) from None
    run = fields.get("run") if isinstance(fields, dict) else None
    steps = fields.get("events") if isinstance(fields, dict) else None
    if not isinstance(run, str) or not trim(run) or not isinstance(steps, list):
        raise DataError("no text `run` or no list `events`.", where=where, hint=HINT)
    status = fields.get("status", "completed")
    if status not in {"completed", "failed", "aborted", "cancelled"}:
        raise DataError("unknown `status`.", where=where, hint=HINT)
    return RecordedRun(run, steps, status, where)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


@dataclass(frozen=True, slots=True)
class Publisher:
    """Turns recorded runs into events, as a runner would have sent them.

    Attributes:
        printer: makes the fingerprints.
        agent: agent of all runs.
        run_prefix: put in front of each run id.
        raw: send arguments and results for the worker to fingerprint.
        now_ms: time of each run's begin, and the epoch: runs published again go on.
    """

    printer: Printer
    agent: str | None
    run_prefix: str
    raw: bool
    now_ms: int

    def run_id(self, recorded: RecordedRun) -> str:
        """The id under which a run is published."""
        return bounded_id(self.run_prefix + recorded.run)

    def events(self, recorded: RecordedRun) -> Iterator[Fields]:
        """The run's events as wire dictionaries, begin and end included.

        Raises:
            DataError: a step is malformed.
        """
        time = float(self.now_ms)
        yield self._event(recorded, 0, time, {"type": "run_started"})
        for number, step in enumerate(recorded.steps, start=1):
            where = f"{recorded.where} step {number}"
            if not isinstance(step, dict):
                raise DataError("a step is no object.", where=where, hint=HINT)
            time += _delay_ms(step, where)
            body = self._body(step, where)
            yield self._event(recorded, number, time, body, where)
        end = {"type": "run_ended", "status": recorded.status}
        yield self._event(recorded, len(recorded.steps) + 1, time, end)

    def _event(
        self, recorded: RecordedRun, seq: int, time: float, body: Fields, where: str | None = None
    ) -> Fields:
        fields = {
            "v": SCHEMA_VERSION,
            **body,
            "id": f"{self.now_ms:x}-{seq}",
            "run": self.run_id(recorded),
            "runner": RUNNER,
            "epoch": self.now_ms,
            "seq": seq,
            "time": int(time),
        }
        if self.agent is not None:
            fields["agent"] = self.agent
        try:
            EVENT.validate_python(fields)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            path = ".".join(str(part) for part in first["loc"][1:])
            message = f"{path}: {first['msg']}."
            raise DataError(message, where=where or recorded.where, hint=HINT) from None
        return fields

    def _body(self, step: Fields, where: str) -> Fields:
        op = step.get("op")
        if op == "compaction":
            return {"type": "compaction", "retried": bool(step.get("retried", True))}
        tool = step.get("tool")
        if op not in {"call", "outcome"} or not isinstance(tool, str):
            message = "`op` is none of call, outcome, compaction, or `tool` is no text."
            raise DataError(message, where=where, hint=HINT)
        name = tool_name(tool, normalize=False)
        body: Fields = {"type": "tool_call" if op == "call" else "tool_outcome", "tool": name}
        if isinstance(call_id := step.get("call_id"), str):
            body["call_id"] = bounded_id(call_id)
        args = to_json(step.get("args", MISSING))
        if op == "call":
            return body | self._call(name, args)
        error, result = (to_json(step.get(part, MISSING)) for part in ("error", "result"))
        return body | self._outcome(name, args, result, error)

    def _call(self, tool: str, args: Json) -> Fields:
        if self.raw and (texts := _texts(args=args)) is not None:
            return texts
        _, fp = self.printer.call(tool, args)
        return _printed(fp, args)

    def _outcome(self, tool: str, args: Json, result: Json, error: Json) -> Fields:
        if error is not NOTHING:
            result = NOTHING  # an error wins
        if self.raw and (texts := _texts(args=args, result=result, error=error)) is not None:
            return texts
        asked, _ = self.printer.call(tool, args)
        return _printed(self.printer.outcome(tool, asked, result, error), args, result, error)


def _texts(**values: Json) -> Fields | None:
    """Raw values as JSON texts; None if one can't travel, so that its digest must."""
    texts = {name: sendable(value) for name, value in values.items() if value.given}
    return None if None in texts.values() else texts


def _printed(fp: Fields, *values: Json) -> Fields:
    oversize = any(value.oversize for value in values)
    return {"fp": fp, "oversize": True} if oversize else {"fp": fp}


def _delay_ms(step: Fields, where: str) -> float:
    delay = step.get("dt", 0)
    if isinstance(delay, bool) or not isinstance(delay, int | float) or not 0 <= delay <= 1e7:
        raise DataError("`dt` is no number of seconds.", where=where, hint=HINT)
    return float(delay) * 1000
