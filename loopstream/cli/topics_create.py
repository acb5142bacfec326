"""``loopstream topics create``: all topics of a prefix."""

from __future__ import annotations

from typing import Annotated

import typer

from loopstream.cli.console import say
from loopstream.cli.options import Bootstrap, ConfigFile, Prefix, SetValues, load_settings


def create(
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", min=1, help="Of events, verdicts and runs; for good."),
    ] = None,
    replication: Annotated[
        int | None, typer.Option("--replication-factor", min=1, help="Copies of each partition.")
    ] = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    config: ConfigFile = None,
    values: SetValues = None,
) -> None:
    """Create the topics of a prefix; those that are there already stay as they are.

    ```console
    $ loopstream topics create --prefix acme --partitions 12 --replication-factor 3
    ```

    The number of partitions can't be changed afterwards: runs would move between partitions and
    lose their history. If none is said (--partitions, or the setting), topics that are there keep
    theirs; another number is refused with exit code 4.
    """
    from loopstream.runtime.admin import ensure_topics

    said = {"partitions": partitions, "replication_factor": replication}
    loaded = load_settings(bootstrap, prefix, config, values, **said)
    settings = loaded.settings
    report = ensure_topics(
        settings.connection,
        settings.prefix,
        settings.partitions,
        settings.replication_factor,
        timeout_s=settings.timeout_s,
        exact="partitions" in loaded.origins,
    )
    for name in report.created:
        say(f"created {name}")
    there = f"{len(report.present)} were there already"
    say(f"{len(report.created)} topics created, {there}; {report.partitions} partitions")
