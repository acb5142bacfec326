"""``loopstream diff``: verdicts of two replays, or of a replay against what was recorded."""

from __future__ import annotations

from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from loopstream.cli.console import Output, print_line, show
from loopstream.cli.forensics import forensic_settings, verdict_topic
from loopstream.cli.options import Bootstrap, ConfigFile, OutputForm, Prefix
from loopstream.errors import EXIT_VERDICT, UsageError

if TYPE_CHECKING:
    from loopstream.config import Settings
    from loopstream.replay.diff import Comparison, Diff

RECORDED: Final = "recorded"
_SAME_DECISION: Final = ("changed", "details")
_STOPS: Final = ("block", "abort")
_COLUMNS: Final = ("change", "scope", "agent", "detector", "action", "tool", "at", "in_b")


class FailOn(StrEnum):
    """Difference that makes the command fail."""

    ANY = "any"
    STOPS = "stops"


def diff(
    a: Annotated[str, typer.Argument(help="Output of a replay, or `recorded`.")],
    b: Annotated[str, typer.Argument(help="Output of a replay, or `recorded`.")] = RECORDED,
    fail_on: Annotated[
        FailOn | None,
        typer.Option("--fail-on", help="Exit with 1 on any difference, or on one in stops."),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=0, help="Differences that a table shows.")
    ] = 20,
    output: OutputForm = Output.TABLE,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    config: ConfigFile = None,
) -> None:
    """Compare verdicts: same, changed, details, earlier or later, other action, only in one.

    `recorded` stands for the verdict topic, in the range of the other side. A replay with the
    recorded settings equals it byte for byte: that is the audit. `earlier` and `later` say where
    the second side has it; `changed` is the same decision with another count, threshold, mode or
    extent, `details` with other words, evidence, times or settings alone.

    ```console
    $ loopstream replay --out now.ndjson && loopstream diff now.ndjson recorded --fail-on any
    $ loopstream replay --set warningThreshold=15 --out what-if.ndjson
    $ loopstream diff now.ndjson what-if.ndjson
    ```

    Partial runs are left out. Between different settings neither of the two is a difference.
    """
    from loopstream.replay.diff import Diff

    settings = forensic_settings(bootstrap, prefix, config)
    compared = Diff()
    try:
        details = _load(compared, settings, a, b)
        found = compared.compare(details_count=details)
        _print(compared, found, output, limit)
        failed = _failed(compared, found, fail_on)
    finally:
        compared.close()
    if failed:
        raise typer.Exit(EXIT_VERDICT)


def _load(compared: Diff, settings: Settings, a: str, b: str) -> bool:
    """Load both sides; whether a change of details counts."""
    from loopstream.replay.outputs import ReplayOutput

    if a == b == RECORDED:
        raise UsageError("both sides are `recorded`.", hint="Replay first: --out FILE.")
    outputs = {
        side: None if name == RECORDED else ReplayOutput(Path(name))
        for side, name in (("a", a), ("b", b))
    }
    for side, other in (("a", "b"), ("b", "a")):
        mine, theirs = outputs[side], outputs[other]
        if mine is not None:
            compared.load_output(side, mine, None if theirs is None else theirs.head)  # type: ignore[arg-type]
        elif theirs is not None:
            compared.load_recorded(side, verdict_topic(settings), theirs.head)  # type: ignore[arg-type]
    tried = {None if each is None else each.head.what_if for each in outputs.values()}
    return len(tried) == 1


def _print(compared: Diff, found: Comparison, output: Output, limit: int) -> None:
    if output is Output.NDJSON:
        show(compared.rows(), (), output)
        return
    if output is Output.JSON:
        summary = {
            "counts": found.counts,
            "by_detector": found.by_detector,
            "by_agent": found.by_agent,
            "sides": found.sides,
            "partial_runs": found.partial_runs,
            "repeated": found.repeated,
            "differences": found.differences,
        }
        print_line(_json(summary))
        return
    for name, groups in (("detector", found.by_detector), ("agent", found.by_agent)):
        grouped = ({name: key, **counts} for key, counts in groups.items())
        show(grouped, (name, *found.counts), output)
    if rows := [_flat(row) for row in islice(compared.rows(), limit)]:
        show(rows, _COLUMNS, output)
    print_line(_closing(found))


def _json(summary: dict[str, Any]) -> str:
    import json

    return json.dumps(summary, ensure_ascii=False)


def _closing(found: Comparison) -> str:
    counts = " ".join(f"{change}={count}" for change, count in found.counts.items())
    return (
        f"a={found.sides['a']} b={found.sides['b']} {counts} "
        f"partial_runs={found.partial_runs} repeated={found.repeated}"
    )


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    here = row.get("a") or row["b"]
    there = row.get("b") if "a" in row else None
    in_b = "" if there is None else f"{there['detector']}/{there['action']} @{there['offset']}"
    return row | {"at": f"{row['partition']}@{here['offset']}", "in_b": in_b}


def _failed(compared: Diff, found: Comparison, fail_on: FailOn | None) -> bool:
    if fail_on is None:
        return False
    if fail_on is FailOn.ANY:
        return found.differences > 0
    return any(_is_stop(row) for row in compared.rows() if row["change"] not in _SAME_DECISION)


def _is_stop(row: dict[str, Any]) -> bool:
    return row["action"] in _STOPS or row.get("b", {}).get("action") in _STOPS
