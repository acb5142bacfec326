"""Options and steps that the forensic verbs share: where events come from, progress, where to."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loopstream.cli.console import say
from loopstream.cli.options import settings_of

if TYPE_CHECKING:
    from loopstream.config import Settings
    from loopstream.replay.moments import Moment
    from loopstream.replay.recorded import VerdictTopic
    from loopstream.replay.records import Source
    from loopstream.replay.run import Job, Progress, Report
    from loopstream.replay.whatif import WhatIf

_RANGE = "Range"
_WHAT_IF = "What if"

Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="WHEN",
        help="Report from here: a time, 2h (ago), or @OFFSET.",
        rich_help_panel=_RANGE,
    ),
]
Until = Annotated[
    str | None,
    typer.Option(
        "--until",
        metavar="WHEN",
        help="As if the log ended here: what was known then.",
        rich_help_panel=_RANGE,
    ),
]
Partitions = Annotated[
    list[int] | None,
    typer.Option(
        "--partition", min=0, help="Only this partition; may be repeated.", rich_help_panel=_RANGE
    ),
]
Runs = Annotated[
    list[str] | None,
    typer.Option("--run", "-r", help="Only this run; may be repeated.", rich_help_panel=_RANGE),
]
Agents = Annotated[
    list[str] | None,
    typer.Option(
        "--agent", help="Only runs of this agent; may be repeated.", rich_help_panel=_RANGE
    ),
]
SettingsFile = Annotated[
    Path | None,
    typer.Option(
        "--settings",
        help="Detector settings to try instead of the recorded ones (JSON or JSON5).",
        rich_help_panel=_WHAT_IF,
    ),
]
Overlay = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="One detector setting to try on everyone, as warningThreshold=15; may be repeated.",
        rich_help_panel=_WHAT_IF,
    ),
]
Events = Annotated[
    Path | None,
    typer.Argument(
        metavar="[FILE]",
        help="NDJSON (events, or kcat's -J envelope) or Parquet; without one the topics are read.",
        show_default=False,
    ),
]


def forensic_settings(bootstrap: str | None, prefix: str | None, config: Path | None) -> Settings:
    """The process settings; `--set` means detector settings in forensic verbs."""
    return settings_of(bootstrap, prefix, config, None)


def source_of(settings: Settings, file: Path | None) -> Source:
    """The topics of the prefix, or a file.

    Raises:
        DataError: the file can't be read, or is of no known form.
    """
    if file is not None:
        from loopstream.replay.files import file_source

        return file_source(file)
    from loopstream.replay.kafka import KafkaSource
    from loopstream.runtime.topics import Topics

    topics = Topics(settings.prefix)
    return KafkaSource(
        settings.connection, topics.events, topics.config, topics.commands, settings.timeout_s
    )


def verdict_topic(settings: Settings) -> VerdictTopic:
    """The recorded verdicts of the prefix."""
    from loopstream.replay.recorded import VerdictTopic
    from loopstream.runtime.topics import Topics

    return VerdictTopic(settings.connection, Topics(settings.prefix).verdicts, settings.timeout_s)


def what_if(file: Path | None, overlay: list[str] | None) -> WhatIf:
    """The settings to try.

    Raises:
        SettingsError: the file holds no settings that could be in force.
        UsageError: a ``--set`` is none.
    """
    from loopstream.config import read_blocks
    from loopstream.replay.whatif import WhatIf, parse_overlay

    blocks = None
    if file is not None:
        blocks = {named.key: named.value.decode() for named in read_blocks(file).blocks}
    return WhatIf(blocks, parse_overlay(overlay or ()))


def moment(text: str | None) -> Moment:
    """A ``--since`` or ``--until``; without one the end of the log on that side."""
    from loopstream.replay.moments import Moment, parse_moment

    return Moment() if text is None else parse_moment(text, int(time.time() * 1000))


def make_job(settings: Settings, source: Source, **more: Any) -> Job:
    """A replay under these process settings.

    Raises:
        SettingsError: the events are to be verified, and there is no key to do it with.
    """
    from loopstream.config import SigningSettings
    from loopstream.replay.files import FileSource
    from loopstream.replay.run import Job
    from loopstream.runtime.settings import worker_settings

    if isinstance(source, FileSource):
        # What a pipe made of records are not the bytes that were signed.
        settings = settings.model_copy(update={"signing": SigningSettings()})
    told = worker_settings(settings)
    return Job(
        source=source,
        deployment=told.deployment,
        key=told.tenant_key,
        verifier=told.verifier,
        **more,
    )


def scopes_of(runs: list[str] | None) -> frozenset[str]:
    """Scope keys of the runs named.

    Raises:
        UsageError: a blank name.
    """
    from loopstream.cli.runs_table import scope_of

    return frozenset(scope_of(run) for run in runs or ())


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder that goes when the command ends."""
    with tempfile.TemporaryDirectory(prefix="loopstream-replay-") as folder:
        yield Path(folder)


@contextmanager
def progress_bar(what: str) -> Iterator[Report | None]:
    """Progress with rate and time left on stderr, on a terminal only."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %  {task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        yield _Meter(bar, what).report


class _Meter:
    """Adds up what the partitions report."""

    def __init__(self, bar: Any, what: str) -> None:
        self._bar = bar
        self._task = bar.add_task(what, total=None, rate="")
        self._parts: dict[int, Progress] = {}
        self._began = time.monotonic()
        self._before: int | None = None

    def report(self, progress: Progress) -> None:
        """One partition has come further."""
        self._parts[progress.number] = progress
        parts = self._parts.values()
        events = sum(part.events for part in parts)
        if self._before is None:
            self._before = events  # what an earlier try had done
        seconds = max(0.001, time.monotonic() - self._began)
        self._bar.update(
            self._task,
            completed=sum(part.done for part in parts),
            total=sum(part.total for part in parts),
            rate=f"{(events - self._before) / seconds:,.0f} events/s",
        )


def say_notes(notes: list[str]) -> None:
    """What people should know, on stderr."""
    for note in notes:
        say(f"note: {note}")
