"""``loopstream runs show``: what became of one run."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, Final

import typer

from loopstream.cli.console import Output, print_line
from loopstream.cli.console import show as show_rows
from loopstream.cli.options import (
    Bootstrap,
    ConfigFile,
    OutputForm,
    Prefix,
    SetValues,
    settings_of,
)
from loopstream.errors import UsageError

_LINES: Final = (
    "run",
    "session",
    "agent",
    "runner",
    "status",
    "action",
    "detector",
    "count",
    "reason",
    "verdict_time",
    "calls",
    "outcomes",
    "refused",
    "warnings",
    "blocked_calls",
    "shadow",
    "gaps",
    "lost",
    "last_event",
)
_TIMES: Final = ("verdict_time", "last_event")


def show(
    run: Annotated[str, typer.Argument(help="Run id.")],
    output: OutputForm = Output.TABLE,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    config: ConfigFile = None,
    values: SetValues = None,
) -> None:
    """Show a run's record: status, last reason with detector and count, totals, standing blocks.

    ```console
    $ loopstream runs show monday-17
    ```

    The record is as of the worker's last checkpoint, which is at most
    worker.checkpoint_max_interval_s away: standing, reason, warnings and blocked calls. Counts of a
    run of which nothing was said since (calls, outcomes, last event) may be 30 s older. The modes
    are those of the run's agent now.
    Exit code 2 if no worker knows the run.
    """
    from loopstream.cli.config_show import blocks_of
    from loopstream.cli.runs_table import read_summaries, scope_of
    from loopstream.policy.deployment import PROFILES
    from loopstream.policy.in_force import modes

    settings = settings_of(bootstrap, prefix, config, values)
    scope = scope_of(run)
    row = read_summaries(settings, scope).get(scope)
    if row is None:
        hint = "Is a worker running? `loopstream runs list` shows all; records come at checkpoints."
        raise UsageError("no worker knows this run.", where=run, hint=hint)
    # Of the deployment that the record is from: this process may have been told another.
    of_run = (name for name in PROFILES if name == row.get("profile"))
    profile = next(of_run, settings.deployment.profile)
    blocks = blocks_of(settings, row.get("agent"))
    found = modes(profile, blocks, deployment=row.get("mode", "enforce"))
    row["modes"] = {detector: mode for detector, mode, _ in found}
    if output is not Output.TABLE:
        show_rows([row], (), output)
        return
    for line in _lines(row):
        print_line(line)


def _lines(row: dict[str, Any]) -> Iterator[str]:
    from loopstream.cli.runs_table import told

    in_shadow = " (shadow: not refused)" if row.get("mode") == "shadow" else ""
    row = told(row)
    for name in _LINES:
        if name in row:
            value = _time(row[name]) if name in _TIMES else row[name]
            yield f"{name.replace('_', ' '):13} {value}"
    for block in row.get("standing", ()):
        target = block.get("signature") or block.get("tool") or ""
        yield f"{'standing':13} {block['detector']} ({block['count']}): {target}{in_shadow}"
    if not row.get("standing"):
        yield f"{'standing':13} nothing is refused"
    held = [f"{name} {mode}" for name, mode in row["modes"].items() if mode != "enforce"]
    yield f"{'modes':13} {', '.join(held) or 'all detectors are enforced'}"
    yield f"{'position':13} partition {row['partition']}, offset {row['offset']}"


def _time(millis: int) -> str:
    moment = datetime.fromtimestamp(millis / 1000, tz=UTC)
    return moment.isoformat(sep=" ", timespec="milliseconds")
