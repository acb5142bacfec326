"""``loopstream describe``: what a deployment is made of, without asking Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from loopstream.cli.console import Output, print_line, show
from loopstream.cli.options import (
    Bootstrap,
    ConfigFile,
    OutputForm,
    Prefix,
    SetValues,
    settings_of,
)
from loopstream.errors import UsageError

if TYPE_CHECKING:
    from loopstream.config import Settings

_COLUMNS: Final = ("kind", "name", "partitions", "about")
_ABOUT: Final = {
    "events": "what runners report, and what operators said, in the order that decides",
    "verdicts": "what runners obey",
    "dead_letters": "position, code and digest of what could not be used",
    "runs": "latest summary of each run; feeds `runs list` and the dashboard",
    "changelog": "packed rows of the table, one a run",
    "config": "detector settings by agent id or *, written by operators",
    "commands": "release, abort and mute, written by operators",
}


def describe(
    mermaid: Annotated[
        bool, typer.Option("--mermaid", help="A flow chart for Markdown instead of a table.")
    ] = False,
    output: OutputForm = Output.TABLE,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    config: ConfigFile = None,
    values: SetValues = None,
) -> None:
    """Describe the topics, the table, the consumer group and the detectors of a prefix.

    What is described is what the settings say, not what a cluster has: that is `topics show`.

    ```console
    $ loopstream describe
    $ loopstream describe --prefix acme --mermaid
    ```
    """
    settings = settings_of(bootstrap, prefix, config, values)
    if not mermaid:
        show(_rows(settings), _COLUMNS, output)
    elif output is not Output.TABLE:
        raise UsageError("--mermaid is a form of its own.", hint="Leave -o away.")
    else:
        for line in chart(settings):
            print_line(line)


def chart(settings: Settings) -> Iterator[str]:
    """Who writes what, and who reads it, as a mermaid flow chart."""
    from loopstream.runtime.topics import Topics

    names = Topics(settings.prefix)
    yield "flowchart LR"
    yield '  runners["agent runners<br/>loopstream.sdk"]'
    yield f'  workers["workers<br/>group {settings.prefix}.worker<br/>{_judges(settings)}"]'
    yield '  operators["operators"]'
    for name in _ABOUT:
        yield f'  {name}[("{getattr(names, name)}")]'
    yield "  runners -- calls, outcomes --> events --> workers"
    yield "  workers -- warn, block, release, abort --> verdicts --> runners"
    yield "  operators --> config --> workers"
    yield "  operators --> commands --> workers"
    yield "  workers -- sequenced settings --> events"
    yield "  workers <--> changelog"
    yield "  workers --> runs --> operators"
    yield "  workers --> dead_letters"


def _rows(settings: Settings) -> Iterator[dict[str, Any]]:
    from loopstream.detect.profiles import PROFILES
    from loopstream.runtime.topics import TABLE, Topics, plan

    names = Topics(settings.prefix)
    about = {getattr(names, name): text for name, text in _ABOUT.items()}
    for topic in plan(settings.prefix, settings.partitions):
        yield {
            "kind": "topic",
            "name": topic.name,
            "partitions": topic.partitions,
            "about": about[topic.name],
            "config": topic.config,
        }
    yield {
        "kind": "table",
        "name": TABLE,
        "partitions": settings.partitions,
        "about": f"state of each run, kept in {settings.worker.store}",
    }
    yield {
        "kind": "group",
        "name": f"{settings.prefix}.worker",
        "partitions": settings.partitions,
        "about": "the workers",
    }
    for detector in PROFILES[settings.deployment.profile].detectors:
        yield {
            "kind": "detector",
            "name": detector.name.value,
            "about": (type(detector).__doc__ or "").strip().splitlines()[0],
        }


def _judges(settings: Settings) -> str:
    from loopstream.detect.profiles import PROFILES

    profile = PROFILES[settings.deployment.profile]
    return f"{profile.name}: {len(profile.detectors)} detectors"
