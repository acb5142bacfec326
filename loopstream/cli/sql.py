"""``loopstream sql``: questions to an export or to the topics."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loopstream.cli.console import Output, say, show
from loopstream.cli.export import fill
from loopstream.cli.forensics import (
    Events,
    Partitions,
    Since,
    Until,
    forensic_settings,
    make_job,
    moment,
    scratch,
    source_of,
)
from loopstream.cli.options import Bootstrap, ConfigFile, OutputForm, Prefix
from loopstream.errors import DataError, UsageError

if TYPE_CHECKING:
    import duckdb

    from loopstream.config import Settings


def sql(
    query: Annotated[str, typer.Argument(help="One query that reads.")],
    file: Events = None,
    export: Annotated[
        Path | None, typer.Option("--export", help="Folder that `loopstream export` wrote.")
    ] = None,
    since: Since = None,
    until: Until = None,
    partition: Partitions = None,
    output: OutputForm = Output.TABLE,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    config: ConfigFile = None,
) -> None:
    """Ask an export, a file of events, or a range of the topics.

    Tables: events, verdicts. Views: runs, calls (each with its outcome), loops (calls that were
    repeated). DuckDB runs without access to files or the network. Rows and timing go to stderr.

    ```console
    $ loopstream sql 'select agent, sum(calls_after_first) from runs group by 1' --since 24h
    $ loopstream sql --export monday 'select * from loops limit 10'
    ```
    """
    from loopstream.replay.query import add_views, ask
    from loopstream.replay.tables import lock

    if export is not None and (file is not None or since or until or partition):
        raise UsageError("--export is a range of its own.")
    settings = forensic_settings(bootstrap, prefix, config)
    with scratch() as work:
        if export is not None:
            opened = _exported(export, work)
        else:
            ranged = (moment(since), moment(until), tuple(partition or ()))
            opened = _ranged(settings, file, ranged, work)
        with opened as db:
            lock(db)
            add_views(db)
            answer = ask(db, query)
            show((_row(answer.columns, row) for row in answer.rows), answer.columns, output)
            say(f"{answer.count:,} rows, {answer.seconds:.3f} s")


@contextmanager
def _exported(folder: Path, work: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    from loopstream.replay.tables import TABLES, connect_readonly

    files = {table: (folder / f"{table}.parquet").resolve() for table in TABLES}
    for path in files.values():
        if not path.is_file():
            hint = "Make one with: loopstream export FOLDER"
            raise DataError("there is no such file.", where=str(path), hint=hint)
    db = connect_readonly(files, work)
    try:
        yield db
    finally:
        db.close()


@contextmanager
def _ranged(
    settings: Settings, file: Path | None, ranged: tuple[Any, Any, tuple[int, ...]], work: Path
) -> Iterator[duckdb.DuckDBPyConnection]:
    from loopstream.replay.tables import Tables

    since, until, numbers = ranged
    job = make_job(settings, source_of(settings, file), since=since, until=until, numbers=numbers)
    tables = Tables(work)
    try:
        fill(tables, job, settings, live=file is None)
        say(f"events: {tables.rows['events']:,} rows, verdicts: {tables.rows['verdicts']:,} rows")
        yield tables.db
    finally:
        tables.close()


def _row(columns: list[str], values: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(columns, map(_plain, values), strict=True))


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="milliseconds")
    if isinstance(value, bytes):
        return value.hex()
    return json.loads(json.dumps(value, default=str))
