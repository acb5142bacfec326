"""``loopstream report``: one HTML file about a run, or about a fleet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from loopstream.cli.console import print_line
from loopstream.cli.export import fill
from loopstream.cli.forensics import (
    Partitions,
    Since,
    Until,
    forensic_settings,
    make_job,
    moment,
    say_notes,
    scratch,
    source_of,
)
from loopstream.cli.options import Bootstrap, ConfigFile, Prefix
from loopstream.errors import DataError, UsageError

if TYPE_CHECKING:
    from loopstream.config import Settings
    from loopstream.replay.run import Job

_MAX_TUNED: Final = 16 * 1024 * 1024


def report(
    run: Annotated[
        str | None, typer.Argument(help="Run id; without one the report is of the fleet.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-O", help="File to write.")] = Path("report.html"),
    file: Annotated[
        Path | None,
        typer.Option("--file", help="NDJSON or Parquet instead of the topics."),
    ] = None,
    since: Since = None,
    until: Until = None,
    partition: Partitions = None,
    tuned: Annotated[
        Path | None, typer.Option("--tuned", help="Outcome of `loopstream tune --out`, to plot.")
    ] = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    config: ConfigFile = None,
) -> None:
    """Write one self-contained HTML file: it opens from disk and reaches no network.

    Of a run: its calls coloured by signature, verdicts on them, streaks as they grew, tables. Of a
    fleet: the agents and tools that loop most, verdicts over time, and what was spent after the
    first warning.

    ```console
    $ loopstream report monday-17
    $ loopstream report --since 24h --out monday.html
    ```
    """
    settings = forensic_settings(bootstrap, prefix, config)
    job = make_job(
        settings,
        source_of(settings, file),
        since=moment(since),
        until=moment(until),
        numbers=tuple(partition or ()),
    )
    if run is not None:
        text = _of_run(job, run)
    else:
        title = f"Fleet {settings.prefix}" if file is None else f"Fleet in {file.name}"
        text = _of_fleet(job, settings, title, _tuned(tuned), live=file is None)
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"can't be written: {error.strerror}.", where=str(out)) from None
    print_line(str(out))


def _of_run(job: Job, run: str) -> str:
    from loopstream.cli.runs_table import scope_of
    from loopstream.replay.explain import Told, explain
    from loopstream.replay.report import run_report

    scope = scope_of(run)
    told = Told(scope)
    with scratch() as folder:
        entries = list(explain(job, scope, folder, told))
    if told.partial:
        told.notes.append("Partial: the run had begun before the log does.")
    say_notes(told.notes)
    return run_report(run, entries, told.identity, told.notes)


def _of_fleet(
    job: Job, settings: Settings, title: str, tuned: dict[str, Any] | None, *, live: bool
) -> str:
    from loopstream.replay.fleet import fleet_tables, verdicts_over_time
    from loopstream.replay.query import add_views
    from loopstream.replay.report import fleet_report
    from loopstream.replay.tables import Tables

    with scratch() as folder:
        tables = Tables(folder)
        try:
            fill(tables, job, settings, live=live)
            add_views(tables.db)
            found, over_time = fleet_tables(tables.db), verdicts_over_time(tables.db)
        finally:
            tables.close()
    notes = [] if tables.rows["events"] else ["The range is empty: there is no event in it."]
    say_notes(notes)
    return fleet_report(title, found, over_time, tuned, notes)


def _tuned(path: Path | None) -> dict[str, Any] | None:
    """What `tune` wrote.

    Raises:
        DataError: it is not.
    """
    if path is None:
        return None
    hint = "Expected is what `loopstream tune --out FILE` writes."
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(_MAX_TUNED))
    except (OSError, ValueError, RecursionError) as error:
        message = f"can't be read ({type(error).__name__})."
        raise DataError(message, where=str(path), hint=hint) from None
    if not isinstance(found, dict) or not {"grid", "settings"} <= found.keys():
        raise DataError("is no outcome of tune.", where=str(path), hint=hint)
    return found
