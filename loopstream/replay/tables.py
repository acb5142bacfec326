"""Events and verdicts as tables: filled in bounded chunks, kept in DuckDB, written as Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import duckdb

from loopstream.errors import DataError, UsageError
from loopstream.replay.columns import (
    EVENT_COLUMNS,
    TIMES,
    VERDICT_COLUMNS,
    Row,
    event_rows,
    line_of,
    verdict_row,
)
from loopstream.replay.lane import Chosen
from loopstream.replay.recorded import VerdictTopic
from loopstream.replay.records import FileRecord, Log, Record, Window
from loopstream.replay.run import Job, replay
from loopstream.wire.verdicts import decode_verdict

_CHUNK: Final = 20_000
_MEMORY: Final = "256MB"
TABLES: Final[Mapping[str, Mapping[str, str]]] = {
    "events": EVENT_COLUMNS,
    "verdicts": VERDICT_COLUMNS,
}


class Tables:
    """The two base tables, in a database on disk.

    Args:
        folder: for the database and what it spills.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.db = duckdb.connect(str(folder / "tables.duckdb"))
        self.db.execute(f"set memory_limit = '{_MEMORY}'")
        self.db.execute("set threads = 2")
        self.db.execute(f"set temp_directory = {quoted(folder / 'spill')}")
        self.rows = dict.fromkeys(TABLES, 0)
        for table, columns in TABLES.items():
            made = ", ".join(f'"{name}" {_kind(name, kind)}' for name, kind in columns.items())
            self.db.execute(f"create table {table} ({made})")

    def close(self) -> None:
        """Close the database."""
        self.db.close()

    def add(self, table: str, rows: Iterable[Row]) -> None:
        """Append rows, a chunk at a time."""
        path = self._folder / "chunk.ndjson"
        waiting = 0
        file = path.open("w", encoding="utf-8")
        try:
            for row in rows:
                file.write(line_of(row))
                waiting += 1
                if waiting == _CHUNK:
                    file.close()
                    self._insert(table, path, waiting)
                    waiting = 0
                    file = path.open("w", encoding="utf-8")
        finally:
            file.close()
        if waiting:
            self._insert(table, path, waiting)

    def _insert(self, table: str, path: Path, count: int) -> None:
        columns = TABLES[table]
        kinds = ", ".join(f"{text(name)}: {text(kind)}" for name, kind in columns.items())
        picked = ", ".join(
            f'epoch_ms("{name}")' if name in TIMES else f'"{name}"' for name in columns
        )
        self.db.execute(
            f"insert into {table} select {picked} from read_json({quoted(path)}, "  # noqa: S608
            f"format = 'newline_delimited', columns = {{{kinds}}})"
        )
        self.rows[table] += count

    def write(self, folder: Path) -> None:
        """Write both tables as Parquet files.

        Raises:
            UsageError: the folder can't be written.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for table in TABLES:
                target = quoted(folder / f"{table}.parquet")
                self.db.execute(f"copy {table} to {target} (format parquet, compression zstd)")
        except (OSError, duckdb.IOException) as error:
            raise UsageError(f"can't be written: {error}.", where=str(folder)) from None


def fill_events(tables: Tables, log: Log, windows: Mapping[int, Window], chosen: Chosen) -> None:
    """Take the events of a range.

    Raises:
        LoopstreamError: as `Log.batches`.
    """
    spans = {n: (w.since, w.until) for n, w in windows.items() if not w.empty}
    tables.add(
        "events",
        (
            row
            for records in log.batches(spans)
            for record in records
            if chosen.may_concern(record.key, record.value)
            for row in event_rows(record, log.name)
            if not chosen.scopes or row.get("scope") in chosen.scopes or row.get("type") == "pin"
        ),
    )


def fill_verdicts(
    tables: Tables, topic: VerdictTopic, windows: Mapping[int, Window], chosen: Chosen
) -> None:
    """Take the recorded verdicts on the events of a range.

    Raises:
        LoopstreamError: as `VerdictTopic.read`.
    """

    def rows() -> Iterator[Row]:
        for one in topic.read():
            evidence = one.verdict.evidence
            window = windows.get(evidence.partition)
            if window is None or not window.since <= evidence.offset < window.until:
                continue
            if chosen.takes(one.verdict.scope, one.verdict):
                record: Record = FileRecord(
                    one.partition, one.offset, one.append_time, one.key, one.value
                )
                yield verdict_row(one.verdict, record, topic.topic)

    tables.add("verdicts", rows())


def fill_replayed(tables: Tables, job: Job, folder: Path) -> None:
    """Judge a range and take those verdicts, where none were recorded.

    Raises:
        LoopstreamError: as `run.replay`.
    """
    done = replay(replace(job, write=True), folder)

    def rows() -> Iterator[Row]:
        for part in done.parts:
            with part.path.open("rb") as lines:
                for offset, line in enumerate(lines):
                    verdict = decode_verdict(line)
                    record = FileRecord(part.number, offset, verdict.append_time, None, line)
                    yield verdict_row(verdict, record, "replayed")

    tables.add("verdicts", rows())


def quoted(path: Path) -> str:
    """A path as a SQL text."""
    return text(str(path))


def text(value: str) -> str:
    """A SQL text."""
    return "'" + value.replace("'", "''") + "'"


def _kind(name: str, kind: str) -> str:
    return "TIMESTAMP" if name in TIMES else kind


def connect_readonly(files: Mapping[str, Path], folder: Path) -> duckdb.DuckDBPyConnection:
    """A connection that sees Parquet files as tables, and nothing else of the machine.

    Raises:
        DataError: a file is no Parquet, or lacks columns.
    """
    db = duckdb.connect(":memory:")
    db.execute(f"set memory_limit = '{_MEMORY}'")
    db.execute(f"set temp_directory = {quoted(folder / 'spill')}")
    paths = ", ".join(quoted(path) for path in files.values())
    db.execute(f"set allowed_paths = [{paths}]")
    for table, path in files.items():
        try:
            query = f"select * from read_parquet({quoted(path)})"  # noqa: S608 - quoted
            db.execute(f"create view {table} as {query}")
            found = {row[0] for row in db.execute(f"describe {table}").fetchall()}
        except duckdb.Error as error:
            message = f"is no Parquet file ({type(error).__name__})."
            raise DataError(message, where=str(path)) from None
        if lacking := [name for name in TABLES[table] if name not in found]:
            hint = "Expected is what `loopstream export` writes."
            message = f"lacks the columns {', '.join(lacking[:5])}."
            raise DataError(message, where=str(path), hint=hint)
    return db


def lock(db: duckdb.DuckDBPyConnection) -> None:
    """From here on: no files, no network, no extensions, and no way back."""
    db.execute("set enable_external_access = false")
    db.execute("set lock_configuration = true")
