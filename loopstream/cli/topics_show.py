"""``loopstream topics show``: the topics of a prefix as they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from loopstream.cli.console import Output
from loopstream.cli.console import show as show_rows
from loopstream.cli.options import (
    Bootstrap,
    ConfigFile,
    OutputForm,
    Prefix,
    SetValues,
    settings_of,
)

if TYPE_CHECKING:
    from loopstream.config import Settings

_COLUMNS: Final = ("topic", "state", "partitions", "replicas", "records")


def show(
    output: OutputForm = Output.TABLE,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    config: ConfigFile = None,
    values: SetValues = None,
) -> None:
    """Show the topics of a prefix: partitions, replicas and records held, and what is missing.

    ```console
    $ loopstream topics show --prefix acme
    ```

    Exit code 4 if a topic is missing or does not fit.
    """
    from loopstream.runtime.admin import check_topics

    settings = settings_of(bootstrap, prefix, config, values)
    show_rows(_rows(settings), _COLUMNS, output)
    check_topics(settings.connection, settings.prefix, timeout_s=settings.timeout_s)


def _rows(settings: Settings) -> Iterator[dict[str, Any]]:
    from loopstream.cli import kafka
    from loopstream.runtime.topics import plan

    wanted = {topic.name: topic for topic in plan(settings.prefix, settings.partitions)}
    with kafka.admin(settings) as client:
        found = {topic["name"]: topic for topic in client.describe_topics(list(wanted))}
    with kafka.consumer(settings) as reader:
        for name, topic in wanted.items():
            row: dict[str, Any] = {"topic": name, "state": "missing", "wanted": topic.config}
            described = found.get(name)
            if described and not described["error_code"]:
                partitions = described["partitions"]
                row |= {
                    "state": "there",
                    "partitions": len(partitions),
                    "replicas": len(partitions[0]["replica_nodes"]),
                    "records": kafka.held(reader, name, settings),
                }
            yield row
