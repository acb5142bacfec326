"""``loopstream runs list``: the runs that workers know of."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final

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

_COLUMNS: Final = ("run", "agent", "status", "calls", "detector", "count", "reason")


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
    output: OutputForm = Output.TABLE,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    config: ConfigFile = None,
    values: SetValues = None,
) -> None:
    """List the runs, as workers wrote them down at their last checkpoints.

    ```console
    $ loopstream runs list --status blocked
    $ loopstream runs list -o ndjson | jq -r .run
    ```
    """
    from loopstream.cli.runs_table import read_summaries

    settings = settings_of(bootstrap, prefix, config, values)

    def wanted(row: dict[str, Any]) -> bool:
        return status in {None, row["status"]} and agent in {None, row.get("agent")}

    rows = sorted(filter(wanted, read_summaries(settings).values()), key=_newest_last)
    show((row | {"run": run_name(row)} for row in rows), _COLUMNS, output)


def run_name(row: dict[str, Any]) -> str:
    """A run's id, or which session's "no run" scope it is."""
    return row.get("run") or f"(no run) {row.get('session', '')}"


def _newest_last(row: dict[str, Any]) -> int:
    last: int = row["last_event"]
    return last
