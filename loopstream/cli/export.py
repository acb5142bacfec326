"""``loopstream export``: events and verdicts as Parquet."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loopstream.cli.console import print_line, say
from loopstream.cli.forensics import (
    Events,
    Partitions,
    Runs,
    Since,
    Until,
    forensic_settings,
    make_job,
    moment,
    scopes_of,
    scratch,
    source_of,
    verdict_topic,
)
from loopstream.cli.options import Bootstrap, ConfigFile, Prefix

if TYPE_CHECKING:
    from loopstream.config import Settings
    from loopstream.replay.run import Job
    from loopstream.replay.tables import Tables


def export(
    folder: Annotated[Path, typer.Argument(help="Folder for events.parquet and verdicts.parquet.")],
    file: Events = None,
    since: Since = None,
    until: Until = None,
    partition: Partitions = None,
    run: Runs = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    config: ConfigFile = None,
) -> None:
    """Write events and verdicts of a range as Parquet, one row each, with all their fields.

    With topic, partition, offset, append time and headers. `replay FOLDER/events.parquet` judges
    the export again, `sql --export FOLDER` asks it questions.

    ```console
    $ loopstream export monday --since 2026-11-23 --until 2026-11-24
    ```
    """
    from loopstream.replay.lane import Chosen
    from loopstream.replay.tables import Tables

    settings = forensic_settings(bootstrap, prefix, config)
    job = make_job(
        settings,
        source_of(settings, file),
        since=moment(since),
        until=moment(until),
        numbers=tuple(partition or ()),
        chosen=Chosen(scopes_of(run)),
    )
    began = time.monotonic()
    with scratch() as work:
        tables = Tables(work)
        try:
            fill(tables, job, settings, live=file is None)
            tables.write(folder)
        finally:
            tables.close()
    if not tables.rows["events"]:
        say("the range is empty: there is no event in it")
    for table, count in tables.rows.items():
        print_line(f"{folder / f'{table}.parquet'}: {count:,} rows")
    say(f"{time.monotonic() - began:.1f} s")


def fill(tables: Tables, job: Job, settings: Settings, *, live: bool) -> None:
    """Fill both tables from a source; a file has no verdict topic beside it: it is replayed.

    Raises:
        LoopstreamError: as of the source.
    """
    from loopstream.replay.run import plan
    from loopstream.replay.tables import fill_events, fill_replayed, fill_verdicts

    with job.source.open() as log:
        windows = plan(job, log)
        fill_events(tables, log, windows, job.chosen)
    if live:
        fill_verdicts(tables, verdict_topic(settings), windows, job.chosen)
    else:
        with scratch() as work:
            fill_replayed(tables, job, work)
