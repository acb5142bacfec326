"""``loopstream doctor``: looks at everything that a deployment stands on, and says what to do."""

from __future__ import annotations

from typing import Annotated

import typer

from loopstream.cli.console import Output, say, show
from loopstream.cli.examine import Role, State, examine
from loopstream.cli.options import (
    Bootstrap,
    ConfigFile,
    OutputForm,
    Prefix,
    SetValues,
    settings_of,
)

_COLUMNS = ("check", "state", "detail", "do")


def doctor(
    role: Annotated[
        Role, typer.Option("--role", help="Whose rights to check: those of the user that asks.")
    ] = Role.WORKER,
    output: OutputForm = Output.TABLE,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    config: ConfigFile = None,
    values: SetValues = None,
) -> None:
    """Check versions, Kafka, topics, rights, workers, lag, clocks and settings; say what to do.

    Nothing is changed, and nothing is written to Kafka. Rights are those that the brokers say the
    asking user has; where they don't tell, it says so.

    ```console
    $ loopstream doctor
    $ loopstream doctor --role runner -o ndjson | jq 'select(.state != "ok")'
    ```

    Exit codes: 0 if nothing failed (warnings count as that), 3 if versions or settings did, 4 if
    Kafka, topics or rights did.
    """
    settings = settings_of(bootstrap, prefix, config, values)
    found = list(examine(settings, role))
    show((finding.row() for finding in found), _COLUMNS, output)
    failed = [finding for finding in found if finding.state is State.FAIL]
    warned = sum(finding.state is State.WARN for finding in found)
    say(f"{len(found)} checks: {len(failed)} failed, {warned} to look at")
    if failed:
        raise typer.Exit(failed[0].exit_code)
