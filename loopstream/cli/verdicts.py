"""``loopstream verdicts``: what was decided, and what is being decided."""

from __future__ import annotations

import time
from collections.abc import Iterator
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from loopstream.cli.console import Output, aligned, print_line, say, show
from loopstream.cli.hints import completed
from loopstream.cli.options import (
    Bootstrap,
    ConfigFile,
    OutputForm,
    Prefix,
    SetValues,
    settings_of,
)
from loopstream.errors import EXIT_VERDICT, DataError, UsageError

if TYPE_CHECKING:
    from loopstream.config import Settings

_COLUMNS: Final = {
    "time": 8,
    "run": 20,
    "action": 7,
    "level": 8,
    "detector": 24,
    "count": 5,
    "tool": 16,
    "reason": 0,
}
_RANK: Final = {"none": 0, "warning": 1, "critical": 2}


class FailOn(StrEnum):
    """Verdict level that makes the command fail."""

    WARNING = "warning"
    CRITICAL = "critical"


def verdicts(
    run: Annotated[str | None, typer.Option("--run", "-r", help="Only those of this run.")] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on as they come, until Ctrl-C.")
    ] = False,
    new: Annotated[
        bool, typer.Option("--new", help="With --follow: leave out those that are there already.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, help="Stop after so many.")
    ] = None,
    fail_on: Annotated[
        FailOn | None,
        typer.Option("--fail-on", help="Exit with 1 if any is of this level or above."),
    ] = None,
    output: OutputForm = Output.TABLE,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    config: ConfigFile = None,
    values: SetValues = None,
) -> None:
    """Print verdicts: warnings, blocks, releases, aborts and answers.

    ```console
    $ loopstream verdicts --run monday-17
    $ loopstream verdicts --follow -o ndjson | jq .reason
    ```

    In the table blocks of a run that repeat each other are put together (x12); the JSON forms and
    the topic have each of them.

    Only the partition of the run is read when --run is given. If there is none of it, stderr says
    so; the exit code is 0.
    """
    if follow and output is Output.JSON and limit is None:
        raise UsageError("--follow with -o json never ends.", hint="Take -o ndjson.")
    if new and not follow:
        raise UsageError("--new makes sense with --follow only.")
    from loopstream.web.collapse import collapsed_lines

    settings = settings_of(bootstrap, prefix, config, values)
    seen = _Seen()
    rows = islice(seen.watch(_read(settings, run, follow, new, seen)), limit)
    try:
        if output is Output.TABLE:
            for line in aligned(map(_table_row, collapsed_lines(rows)), _COLUMNS):
                print_line(line)
        else:
            show(rows, (), output)
    except KeyboardInterrupt:
        if not follow:
            raise
    if run is not None and not follow and not seen.count:
        say(completed(f"there is no verdict on {run}; all runs: loopstream runs list"))
    if seen.undecodable:
        raise DataError(f"{seen.undecodable} records were no verdicts; they were left out.")
    if fail_on is not None and seen.worst >= _RANK[fail_on.value]:
        raise typer.Exit(EXIT_VERDICT)


class _Seen:
    """What has gone by."""

    def __init__(self) -> None:
        self.worst = 0
        self.count = 0
        self.undecodable = 0

    def watch(self, rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for row in rows:
            self.count += 1
            self.worst = max(self.worst, _RANK.get(row["level"], 0))
            yield row


def _read(
    settings: Settings, run: str | None, follow: bool, new: bool, seen: _Seen
) -> Iterator[dict[str, Any]]:
    from loopstream.cli import kafka
    from loopstream.cli.tail import Tail
    from loopstream.runtime.topics import Topics
    from loopstream.wire.codec import CONTENT_TYPE
    from loopstream.wire.routing import partition_of, scope_key
    from loopstream.wire.verdicts import decode_verdict

    topic = Topics(settings.prefix).verdicts
    scope = None if run is None else scope_key(run, "")
    with kafka.consumer(settings) as client:
        partitions = kafka.partitions_of(client, topic)
        if scope is not None:
            partitions = [partitions[partition_of(scope, len(partitions))]]
        tail = Tail(client, partitions, not new, follow, settings.timeout_s)
        for record in tail.records():
            try:
                verdict = decode_verdict(record.value, dict(record.headers).get(CONTENT_TYPE))
            except DataError as error:
                seen.undecodable += 1
                say(f"{topic}-{record.partition}@{record.offset}: {error.message}")
                continue
            if scope is None or verdict.scope == scope:
                yield verdict.model_dump(mode="json", by_alias=True, exclude_none=True)


def _table_row(row: dict[str, Any]) -> dict[str, Any]:
    from loopstream.cli.explain import marked

    at = time.strftime("%H:%M:%S", time.localtime(row["append_time"] / 1000))
    run = row.get("run") or f"(no run) {row.get('session', '')}"
    times = f" x{row['times']}" if "times" in row else ""
    return row | {"time": at, "run": run, "action": f"{row['action']}{times}{marked(row)}"}
