"""``loopstream conformance``: the engine against vector files."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from loopstream.cli.console import print_line, say
from loopstream.errors import UsageError

MAX_SHOWN: Final = 20


class ProfileName(StrEnum):
    """Whose rules."""

    DOCUMENTED = "documented"
    REFERENCE = "reference-2026-9"


def conformance(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Vector files: .jsonl or .jsonl.gz.")
    ] = None,
    sample: Annotated[
        bool, typer.Option("--sample", help="The few vectors that come with loopstream, instead.")
    ] = False,
    profile: Annotated[
        ProfileName, typer.Option("--profile", help="Rules to hold the files against.")
    ] = ProfileName.DOCUMENTED,
) -> None:
    """Run the engine on vector files and print every mismatch.

    Prints up to 20 mismatches (file, id, step, field, expected, got) and closes with one line
    of totals. Exit code 1 if there is any mismatch, 5 if a file can't be read.

    All vectors, measured on the reference, are published beside the project with their description
    (SEMANTICS.md); a few, one or two a detector, come with the package.

    ```console
    $ loopstream conformance --sample
    $ loopstream conformance vectors/documented-directed.jsonl vectors/config.jsonl
    $ loopstream conformance --profile reference-2026-9 vectors/latest-directed.jsonl
    ```
    """
    import json

    from loopstream.conformance import check_files

    if bool(files) == sample:
        raise UsageError("give either FILES or --sample.")
    report = check_files(files or [_sample_path()], profile.value)
    for miss in report.mismatches[:MAX_SHOWN]:
        values = (json.dumps(value, ensure_ascii=False) for value in (miss.expected, miss.got))
        place = f"{miss.file} {miss.scenario} step {miss.step} {miss.field}"
        print_line("{}: expected {}, got {}".format(place, *values))
    if len(report.mismatches) > MAX_SHOWN:
        say(f"… and {len(report.mismatches) - MAX_SHOWN} more")
    print_line(report.closing_line())
    if report.mismatches:
        raise typer.Exit(1)


def _sample_path() -> Path:
    from importlib.resources import files

    return Path(str(files("loopstream.samples") / "conformance.jsonl"))
