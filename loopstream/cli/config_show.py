"""``loopstream config show``: the process settings in force, or an agent's detector settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from loopstream.cli.console import Output, say
from loopstream.cli.console import show as show_rows
from loopstream.cli.options import (
    Bootstrap,
    ConfigFile,
    OutputForm,
    Prefix,
    SetValues,
    load_settings,
)

if TYPE_CHECKING:
    from loopstream.config import Settings
    from loopstream.policy.in_force import Blocks

_DETECTORS: Final = ("detector", "mode", "setting", "value")


def show(
    origin: Annotated[
        bool, typer.Option("--origin", help="Say where each value comes from.")
    ] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Say what each is for.")] = False,
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent", help="The detector settings of this agent instead; `*`: of everyone."
        ),
    ] = None,
    output: OutputForm = Output.TABLE,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    config: ConfigFile = None,
    values: SetValues = None,
) -> None:
    """Show the process settings in force, or the detector settings of an agent.

    The command line goes before the environment, that before the settings file, that before the
    default. In the environment a key is LOOPSTREAM_ and its name, with __ for the dot. Secrets are
    masked.

    Detector settings live in the config topic (see config push), and are read from there.

    ```console
    $ loopstream config show --origin
    $ loopstream config show --explain
    $ loopstream config show --agent researcher --origin
    $ LOOPSTREAM_WORKER__STORE=rocksdict loopstream config show -o json
    ```
    """
    loaded = load_settings(bootstrap, prefix, config, values)
    if agent is not None:
        names = (*_DETECTORS, "origin") if origin else _DETECTORS
        show_rows(_detectors(loaded.settings, agent), names, output)
        return
    asked = {"origin": origin, "about": explain}
    columns = ["setting", "value", *(name for name, wanted in asked.items() if wanted)]
    rows = (row._asdict() for row in loaded.rows())
    show_rows(({name: row[name] for name in columns} for row in rows), columns, output)


def _detectors(settings: Settings, agent: str) -> Iterator[dict[str, Any]]:
    from loopstream.policy.in_force import rows

    told = settings.deployment
    for row in rows(told.profile, blocks_of(settings, agent), deployment=told.mode):
        yield row._asdict()


def blocks_of(settings: Settings, agent: str | None) -> Blocks:
    """The blocks that count for an agent, as the config topic has them; refused ones don't.

    Raises:
        LoopstreamError: Kafka is unreachable, or the topic is missing.
    """
    from loopstream.cli.config_push import blocks_in_force
    from loopstream.config import GLOBAL_KEY
    from loopstream.policy.in_force import Blocks
    from loopstream.policy.settings import refuse
    from loopstream.runtime.topics import Topics

    blocks = blocks_in_force(settings, Topics(settings.prefix).config)
    for key in [key for key in (GLOBAL_KEY, agent) if key in blocks]:
        if (why := refuse(blocks[key])) is not None:
            del blocks[key]
            say(f"{key}: workers refuse the newest block, and keep the one before: {why}.")
    own = None if agent is None or agent == GLOBAL_KEY else blocks.get(agent)
    return Blocks(blocks.get(GLOBAL_KEY), agent, own)
