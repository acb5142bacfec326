"""``loopstream runs list``: the runs that workers know of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from loopstream.cli.console import Output, show
from loopstream.cli.options import (
    Bootstrap,
    ConfigFile,
    OutputForm,
    Prefix,
    SetValues,
    settings_of,
)
from loopstream.errors import UsageError

if TYPE_CHECKING:
    from loopstream.config import Settings

_COLUMNS: Final = (
    "run",
    "agent",
    "status",
    "calls",
    "blocked_calls",
    "shadow",
    "detector",
    "count",
    "reason",
)

Row = dict[str, Any]


class Status(StrEnum):
    """How a run stands."""

    ACTIVE = "active"
    WARNED = "warned"
    BLOCKED = "blocked"
    ABORTED = "aborted"
    ENDED = "ended"


def list_runs(
    status: Annotated[Status | None, typer.Option("--status", help="Only such runs.")] = None,
    agent: Annotated[str | None, typer.Option("--agent", help="Only runs of this agent.")] = None,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Go on and show what changes, until Ctrl-C.")
    ] = False,
    output: OutputForm = Output.TABLE,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    config: ConfigFile = None,
    values: SetValues = None,
) -> None:
    """List the runs, as workers wrote them down at their last checkpoints.

    Blocked calls were refused, or would be again if they came; `shadow` counts warnings, blocks and
    aborts that were only published (mode shadow). Where the whole deployment is in shadow, a
    standing is marked so: it is what it would be.

    With --watch a terminal shows the table as it changes; elsewhere each change is a line.

    ```console
    $ loopstream runs list --status blocked
    $ loopstream runs list -o ndjson | jq -r .run
    $ loopstream runs list --watch
    ```
    """
    settings = settings_of(bootstrap, prefix, config, values)

    def wanted(row: Row) -> bool:
        return status in {None, row["status"]} and agent in {None, row.get("agent")}

    if not watch:
        _once(settings, wanted, output)
    elif output is Output.JSON:
        raise UsageError("--watch with -o json never ends.", hint="Take -o ndjson.")
    else:
        _watch(settings, wanted, output)


def run_name(row: Row) -> str:
    """A run's id, or which session's "no run" scope it is."""
    return row.get("run") or f"(no run) {row.get('session', '')}"


def _once(settings: Settings, wanted: Callable[[Row], bool], output: Output) -> None:
    from loopstream.cli.runs_table import read_summaries

    rows = sorted(filter(wanted, read_summaries(settings).values()), key=_newest_last)
    if output is Output.TABLE:
        show(map(_told, rows), _COLUMNS, output)
    else:
        show((row | {"run": run_name(row)} for row in rows), (), output)


def _told(row: Row) -> Row:
    from loopstream.cli.runs_table import told

    return told(row) | {"run": run_name(row)}


def _watch(settings: Settings, wanted: Callable[[Row], bool], output: Output) -> None:
    import sys
    from contextlib import suppress

    from loopstream.cli.runs_table import changes

    with suppress(KeyboardInterrupt):
        seen = changes(settings, follow=True)
        if output is Output.TABLE and sys.stdout.isatty():
            _on_screen(seen, wanted)
        else:
            _as_lines((row for _, row in seen if row and wanted(row)), output)


def _as_lines(rows: Iterator[Row], output: Output) -> None:
    from loopstream.cli.console import aligned, print_json_line, print_line

    if output is Output.NDJSON:
        for row in rows:
            print_json_line(row | {"run": run_name(row)})
        return
    widths = dict.fromkeys(_COLUMNS, 10) | {"run": 28, "agent": 16, "detector": 24}
    for line in aligned(map(_told, rows), widths):
        print_line(line)


def _on_screen(seen: Iterator[tuple[str, Row | None]], wanted: Callable[[Row], bool]) -> None:
    from rich.live import Live

    from loopstream.cli.console import table_of

    runs: dict[str, Row] = {}
    with Live(refresh_per_second=4, vertical_overflow="ellipsis") as live:
        for key, row in seen:
            runs.pop(key, None)
            if row is not None and wanted(row):
                runs[key] = _told(row)
            # The newest at the top: what does not fit on the screen is the oldest.
            newest = sorted(runs.values(), key=_newest_last, reverse=True)
            live.update(table_of(newest[: live.console.height], _COLUMNS))


def _newest_last(row: Row) -> int:
    last: int = row["last_event"]
    return last
