"""Replay outputs as NDJSON, read back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from loopstream.errors import DataError
from loopstream.events import Verdict
from loopstream.wire.limits import MAX_VERDICT_BYTES
from loopstream.wire.verdicts import decode_verdict

_HINT: Final = "Expected is what `loopstream replay --out FILE` or `-o ndjson` writes."
_MAX_LINE: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Head:
    """First line of a replay's output: what it covers.

    ``spans`` are (since, until) offsets by partition; empty: everything.
    """

    spans: dict[int, tuple[int, int]] = field(default_factory=dict)
    what_if: str | None = None
    scopes: frozenset[str] = frozenset()
    agents: frozenset[str] = frozenset()

    def covers(self, verdict: Verdict) -> bool:
        """Whether a verdict would be part of such a replay."""
        if self.scopes and verdict.scope not in self.scopes:
            return False
        if self.agents and verdict.agent not in self.agents:
            return False
        if not self.spans:
            return True
        since, until = self.spans.get(verdict.evidence.partition, (0, 0))
        return since <= verdict.evidence.offset < until


@dataclass(frozen=True, slots=True)
class OutputLine:
    """A verdict of a replay, with what the replay said about it."""

    verdict: Verdict
    marks: dict[str, Any]


class ReplayOutput:
    """The output of a replay, line by line.

    Args:
        path: the file.

    Attributes:
        partial: scopes whose beginning is gone; complete once all lines were read.
        end: the last line; None until it was read, and if the output was cut short.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.partial: set[str] = set()
        self.end: dict[str, Any] | None = None
        with self._open() as file:
            self.head = self._head(self._parse(file.readline(_MAX_LINE), 1))

    def verdicts(self) -> Iterator[OutputLine]:
        """The verdicts.

        Raises:
            DataError: a line is corrupt, or the output was cut short.
        """
        with self._open() as file:
            file.readline(_MAX_LINE)
            number = 1
            while line := file.readline(_MAX_LINE):
                number += 1
                if (found := self._line(line, number)) is not None:
                    yield found
        if self.end is None:
            raise DataError("was cut short: its last line is missing.", where=str(self.path))

    def _line(self, line: bytes, number: int) -> OutputLine | None:
        fields = self._parse(line, number)
        kind = fields.get("type")
        if kind == "verdict" and len(line) <= MAX_VERDICT_BYTES:
            marks = fields.get("replay")
            try:
                verdict = decode_verdict(line)
            except DataError as error:
                raise DataError(error.message, where=f"{self.path}:{number}") from None
            return OutputLine(verdict, marks if isinstance(marks, dict) else {})
        if kind == "partial" and isinstance(fields.get("scope"), str):
            self.partial.add(fields["scope"])
        elif kind == "end":
            self.end = fields
        else:
            raise DataError("no line of a replay.", where=f"{self.path}:{number}", hint=_HINT)
        return None

    def _parse(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError):
            fields = None
        if not isinstance(fields, dict):
            raise DataError("not JSON.", where=f"{self.path}:{number}", hint=_HINT)
        return fields

    def _head(self, fields: dict[str, Any]) -> Head:
        try:
            known = (fields["type"], fields["v"]) == ("replay", 1)
            spans = {
                int(n): (int(since), int(until)) for n, (since, until) in fields["spans"].items()
            }
            what_if = fields["what_if"]
            scopes, agents = frozenset(fields["scopes"]), frozenset(fields["agents"])
        except (KeyError, TypeError, ValueError, AttributeError):
            known = False
        if not known:
            raise DataError("no output of a replay.", where=f"{self.path}:1", hint=_HINT) from None
        return Head(spans, None if what_if is None else str(what_if), scopes, agents)

    def _open(self) -> IO[bytes]:
        try:
            return self.path.open("rb")
        except OSError as error:
            message = f"can't be read: {error.strerror}."
            raise DataError(message, where=str(self.path)) from None
