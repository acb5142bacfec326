"""``loopstream config show``: the process settings in force."""

from __future__ import annotations

from typing import Annotated

import typer

from loopstream.cli.console import Output
from loopstream.cli.console import show as show_rows
from loopstream.cli.options import (
    Bootstrap,
    ConfigFile,
    OutputForm,
    Prefix,
    SetValues,
    load_settings,
)


def show(
    origin: Annotated[
        bool, typer.Option("--origin", help="Say where each value comes from.")
    ] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Say what each is for.")] = False,
    output: OutputForm = Output.TABLE,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    config: ConfigFile = None,
    values: SetValues = None,
) -> None:
    """Show the process settings in force; secrets are masked.

    The command line goes before the environment, that before the settings file, that before the
    default. In the environment a key is LOOPSTREAM_ and its name, with __ for the dot.

    ```console
    $ loopstream config show --origin
    $ loopstream config show --explain
    $ LOOPSTREAM_WORKER__STORE=rocksdict loopstream config show -o json
    ```

    Detector settings are not among them: they live in the config topic, see config push.
    """
    loaded = load_settings(bootstrap, prefix, config, values)
    asked = {"origin": origin, "about": explain}
    columns = ["setting", "value", *(name for name, wanted in asked.items() if wanted)]
    rows = (row._asdict() for row in loaded.rows())
    show_rows(({name: row[name] for name in columns} for row in rows), columns, output)
