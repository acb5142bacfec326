"""``loopstream scenarios``: re-created reports, and whether the engine gives what is wanted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from loopstream.cli.console import Output, print_line, show
from loopstream.cli.options import ProfileName

if TYPE_CHECKING:
    from loopstream.scenarios import Outcome

COLUMNS: Final = ("id", "want", "got", "at_call", "by_call", "detector", "grade")


def scenarios(
    files: Annotated[list[Path], typer.Argument(help="Scenario files: .jsonl or .jsonl.gz.")],
    profile: Annotated[
        ProfileName, typer.Option("--profile", help="Rules to hold the files against.")
    ] = ProfileName.DOCUMENTED,
    at_least: Annotated[
        float,
        typer.Option(
            "--at-least", min=0, help="How many must come out as wanted; up to 1 it is a share."
        ),
    ] = 0.0,
    output: Annotated[Output, typer.Option("--output", "-o", help="Form of the data.")] = (
        Output.TABLE
    ),
) -> None:
    """Play scenarios through the engine: what was wanted, what was given, and by which call.

    Prints a row for each scenario and closes with one line of totals (on stderr where the data is
    JSON). Exit code 1 if fewer came out as wanted than --at-least, 5 if a file can't be read. The
    form of the files is in docs/reference/scenarios.md.

    ```console
    $ loopstream scenarios --profile extended --at-least 0.9 scenarios.jsonl
    $ loopstream scenarios --output json scenarios.jsonl
    ```
    """
    from loopstream.cli.console import say
    from loopstream.scenarios import check_files

    report = check_files(files, profile.value)
    show(map(_row, report.outcomes), COLUMNS, output)
    (print_line if output is Output.TABLE else say)(report.closing_line())
    reached = report.share if at_least <= 1 else report.count("as_wanted")
    if reached < at_least:
        raise typer.Exit(1)


def _row(outcome: Outcome) -> dict[str, Any]:
    return {
        "id": outcome.id,
        "want": outcome.want,
        "by_call": outcome.by_call,
        "max": outcome.limit,
        "got": outcome.got,
        "at_call": outcome.at_call,
        "detector": outcome.detector,
        "calls": outcome.calls,
        "heard": list(_heard(outcome)),
        "grade": outcome.grade,
    }


def _heard(outcome: Outcome) -> Iterator[dict[str, Any]]:
    for heard in outcome.heard:
        yield {"level": heard.level, "call": heard.call, "detector": heard.detector}
