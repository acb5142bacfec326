"""Options that many verbs share, and the settings that they add up to."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from loopstream.cli.console import Output
from loopstream.cli.hints import given
from loopstream.errors import UsageError

if TYPE_CHECKING:
    from loopstream.config import Loaded, Settings

_KAFKA: Final = "Kafka and settings"

Bootstrap = Annotated[
    str | None,
    typer.Option(
        "--bootstrap", "-b", metavar="HOST:PORT", help="Brokers to ask.", rich_help_panel=_KAFKA
    ),
]
Prefix = Annotated[
    str | None,
    typer.Option("--prefix", "-p", help="Begin of all topic names.", rich_help_panel=_KAFKA),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config", "-c", help="Settings file instead of loopstream.toml.", rich_help_panel=_KAFKA
    ),
]
SetValues = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Any process setting by its key; may be repeated.",
        rich_help_panel=_KAFKA,
    ),
]
OutputForm = Annotated[
    Output, typer.Option("--output", "-o", help="Form of the data on stdout.", show_default=True)
]


class ProfileName(StrEnum):
    """Whose rules."""

    DOCUMENTED = "documented"
    REFERENCE = "reference-2026-9"
    EXTENDED = "extended"


def load_settings(
    bootstrap: str | None = None,
    prefix: str | None = None,
    file: Path | None = None,
    values: list[str] | None = None,
    **more: object,
) -> Loaded:
    """The settings under what the command line says.

    Args:
        more: further settings by key, ``__`` for the dot; None is not said.

    Raises:
        UsageError: a ``--set`` is no ``key=value``.
        SettingsError: as of `config.load`.
    """
    from loopstream.config import load

    given(bootstrap, prefix, file)
    said: dict[str, object] = {key.replace("__", "."): value for key, value in more.items()}
    said |= {"bootstrap": bootstrap, "prefix": prefix}
    for text in values or ():
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise UsageError(f"--set {text}: not KEY=VALUE.")
        said[key] = value
    return load(said, file=file)


def settings_of(
    bootstrap: str | None, prefix: str | None, file: Path | None, values: list[str] | None
) -> Settings:
    """As `load_settings`, without the origins."""
    return load_settings(bootstrap, prefix, file, values).settings
