"""Events from files: NDJSON (bare events, or kcat's ``-J`` envelope), plain or gzipped; Parquet."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from loopstream.errors import DataError
from loopstream.events import Pin
from loopstream.replay.controls import ReplaySources
from loopstream.replay.envelope import from_envelope, is_envelope
from loopstream.replay.opening import decoded
from loopstream.replay.records import Bounds, FileRecord, Record
from loopstream.wire.codec import CONTENT_TYPE, JSON_TYPE
from loopstream.wire.routing import partition_of, scope_key

_MAX_LINE: Final = 8 * 1024 * 1024
_BATCH: Final = 1000
_GZIP: Final = b"\x1f\x8b"
_PARQUET: Final = b"PAR1"
_MAX_PARTITIONS: Final = 1024
_SAMPLED_SCOPES: Final = 1000
_HINT: Final = "A line is an event, or a record in kcat's -J envelope as `loopstream tail` writes."


@dataclass(frozen=True, slots=True)
class FileSource:
    """A file of records.

    Attributes:
        partitions: how many the events topic had; None: found out from where the runs are.
    """

    path: Path
    partitions: int | None = None

    @contextmanager
    def open(self) -> Iterator[FileLog]:
        """Read the file through once, to know what it holds.

        Raises:
            DataError: it can't be read, or a line is corrupt.
        """
        yield FileLog(self)

    def records(self) -> Iterator[Record]:
        """All records in the order of the file.

        Raises:
            DataError: a line is corrupt.
        """
        try:
            with self.path.open("rb") as raw:
                head = raw.read(4)
                raw.seek(0)
                if head == _PARQUET:
                    from loopstream.replay.parquet import read_parquet  # noqa: PLC0415 - an extra

                    yield from read_parquet(self.path)
                    return
                zipped = head[:2] == _GZIP
                yield from _lines(gzip.GzipFile(fileobj=raw) if zipped else raw, self.path)
        except (OSError, EOFError) as error:
            text = getattr(error, "strerror", None) or type(error).__name__
            raise DataError(f"can't be read: {text}.", where=str(self.path)) from None


def file_source(path: Path, partitions: int | None = None) -> FileSource:
    """A source for a file.

    Raises:
        DataError: there is no such file.
    """
    if not path.is_file():
        raise DataError("there is no such file.", where=str(path))
    return FileSource(path.resolve(), partitions)


class FileLog:
    """A file, opened: its bounds, its pins, how runs are routed in it."""

    verified = False

    def __init__(self, source: FileSource) -> None:
        self._source = source
        self.name = source.path.name
        self._bounds: dict[int, Bounds] = {}
        self._pins: dict[int, Pin] = {}
        self._times: dict[int, list[tuple[int, int]]] = {}
        scopes: dict[str, int] = {}
        for record in source.records():
            self._see(record, scopes)
        self.partitions = source.partitions or self._routed_over(scopes)

    def numbers(self) -> list[int]:
        """The partitions that the file has records of."""
        return sorted(self._bounds)

    def bounds(self, number: int) -> Bounds:
        """First offset and end of a partition, as far as the file goes."""
        return self._bounds[number]

    def offset_at(self, number: int, millis: int) -> int:
        """First offset appended at or after a time, by reading the file."""
        for record in self._source.records():
            if record.partition == number and record.timestamp >= millis:
                return record.offset
        return self._bounds[number].end

    def batches(self, spans: Mapping[int, tuple[int, int]]) -> Iterator[Sequence[Record]]:
        """Batches of one partition each; in order within it."""
        waiting: dict[int, list[Record]] = {number: [] for number in spans}
        for record in self._source.records():
            begin, end = spans.get(record.partition, (0, 0))
            if not begin <= record.offset < end:
                continue
            batch = waiting[record.partition]
            batch.append(record)
            if len(batch) >= _BATCH:
                waiting[record.partition] = []
                yield batch
        yield from (batch for batch in waiting.values() if batch)

    def controls(self) -> ReplaySources:
        """A file has no operators' topics beside it."""
        return ReplaySources()

    def pins(self) -> Mapping[int, Pin]:
        """The first pin of each partition."""
        return self._pins

    def _see(self, record: Record, scopes: dict[str, int]) -> None:
        number, offset = record.partition, record.offset
        seen = self._bounds.get(number)
        if seen is None:
            self._bounds[number] = Bounds(offset, offset + 1)
        elif offset < seen.end:
            message = f"partition {number}: offset {offset} stands after {seen.end - 1}."
            hint = "Records of a partition must stand in order; `sort` by .offset."
            raise DataError(message, where=str(self._source.path), hint=hint)
        else:
            self._bounds[number] = Bounds(seen.begin, offset + 1)
        wanted = len(scopes) < _SAMPLED_SCOPES
        if wanted or (number not in self._pins and b"pin" in (record.value or b"")):
            for event in decoded(record).events:
                if isinstance(event, Pin):
                    self._pins.setdefault(number, event)
                elif wanted and event.type != "control":
                    scope = scope_key(event.run, event.session)
                    if scope is not None:
                        scopes.setdefault(scope, number)

    def _routed_over(self, scopes: dict[str, int]) -> int:
        """The smallest partition count that explains where the runs are."""
        least = max(self._bounds, default=0) + 1
        for count in range(least, _MAX_PARTITIONS + 1):
            if all(partition_of(scope, count) == number for scope, number in scopes.items()):
                return count
        return least


def _lines(lines: IO[bytes] | gzip.GzipFile, path: Path) -> Iterator[Record]:
    number = 0
    while line := lines.readline(_MAX_LINE + 1):
        number += 1
        where = f"{path}:{number}"
        if len(line) > _MAX_LINE:
            raise DataError(f"over {_MAX_LINE} bytes.", where=where)
        if line.strip():
            yield _record(line, number, where)


def _record(line: bytes, number: int, where: str) -> Record:
    try:
        # kcat writes a record's bytes as they are, UTF-8 or not.
        fields: Any = json.loads(line.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise DataError("not JSON.", where=where, hint=_HINT)
    if is_envelope(fields):
        return from_envelope(fields, where)
    if "type" not in fields or "v" not in fields:
        raise DataError("neither an event nor a record.", where=where, hint=_HINT)
    time = fields.get("time")
    appended = time if isinstance(time, int) else 0
    return FileRecord(0, number - 1, appended, None, line.strip(), ((CONTENT_TYPE, JSON_TYPE),))
