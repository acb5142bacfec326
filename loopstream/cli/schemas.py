"""``loopstream schemas``: the wire's contract as documents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loopstream.cli.console import print_line, say


def schemas(
    folder: Annotated[Path, typer.Argument(help="Where the documents are.")] = Path("schemas"),
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit with 5 if one differs.")
    ] = False,
) -> None:
    """Write the JSON Schemas of all records, and an AsyncAPI 3 document of the topics.

    ```console
    $ loopstream schemas
    $ loopstream schemas --check
    ```
    """
    from loopstream.wire import schema

    if check:
        schema.check(folder)
        say(f"{folder}: as the models")
        return
    for path in schema.write(folder):
        print_line(str(path))
