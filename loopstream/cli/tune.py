"""``loopstream tune``: which thresholds would have been right."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from loopstream.cli.console import Output, print_line, say, show
from loopstream.cli.forensics import (
    Events,
    Since,
    Until,
    forensic_settings,
    make_job,
    moment,
    scratch,
    source_of,
)
from loopstream.cli.options import Bootstrap, ConfigFile, OutputForm, Prefix
from loopstream.errors import DataError, UsageError

if TYPE_CHECKING:
    from loopstream.config import Settings
    from loopstream.replay.cases import Case
    from loopstream.replay.run import Job
    from loopstream.replay.tune import Point

_COLUMNS: Final = (
    "warningThreshold",
    "criticalThreshold",
    "precision",
    "recall",
    "delay_calls",
    "false_stops",
    "false_stops_per_1000",
    "good_runs_warned",
    "censored",
)


def tune(
    file: Events = None,
    recorded: Annotated[
        Path | None,
        typer.Option("--recorded", help="Recorded runs instead: .jsonl, plain or gzipped."),
    ] = None,
    splice: Annotated[
        bool,
        typer.Option("--splice", help="All runs are good; loops are spliced into copies of them."),
    ] = False,
    grid: Annotated[
        list[str] | None,
        typer.Option("--grid", metavar="KEY=V,V", help="Values to try; may be repeated."),
    ] = None,
    since: Since = None,
    until: Until = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write all figures here, for `report --tuned`.")
    ] = None,
    output: OutputForm = Output.TABLE,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    config: ConfigFile = None,
) -> None:
    """Replay runs of which it is known whether they loop, over a grid of thresholds.

    Which ones loop is known from labels (see `label`), or because the loop was spliced in: the
    first half of a run, its last one, two or three calls repeated. Printed are precision, recall
    by episode, delay in calls from a loop's begin to its stop, false stops per 1,000 good runs,
    and the settings to paste.

    ```console
    $ loopstream tune --grid criticalThreshold=10,15,20
    $ loopstream tune --recorded runs.jsonl.gz --splice --out tuned.json
    ```

    A threshold that --grid does not name goes along with those that it does, so that none is
    clamped. Where nothing loops, or nothing was stopped, there is no precision (n/a).

    What follows a recorded refusal is censored: such a run counts only if it is stopped before.
    """
    from loopstream.replay.tune import DEFAULT_GRID, best, grid_of
    from loopstream.replay.tune import tune as run_tune

    blocks = grid_of(grid) if grid else DEFAULT_GRID
    settings = forensic_settings(bootstrap, prefix, config)
    if settings.deployment.profile != "documented":
        raise UsageError(f"profile {settings.deployment.profile} has fixed thresholds.")
    cases = _cases(settings, file, recorded, splice, (moment(since), moment(until)))
    if not cases:
        raise UsageError("there is no run to try them on.", hint="Label verdicts, or --splice.")
    points = run_tune(cases, blocks, _progress)
    chosen = best(points)
    found = {
        "cases": len(cases),
        "grid": [point.as_dict() for point in points],
        "settings": {"tools": {"loopDetection": dict(chosen.block)}},
    }
    if out is not None:
        _write(found, out)
    _print(found, points, chosen, output)


def _cases(
    settings: Settings,
    file: Path | None,
    recorded: Path | None,
    splice: bool,
    ranged: tuple[Any, Any],
) -> list[Case]:
    from loopstream.replay.cases import collect, labelled, spliced

    with scratch() as folder:
        if recorded is not None:
            if file is not None:
                raise UsageError("give either a FILE or --recorded.")
            file = folder / "events.jsonl"
            _tell(settings, recorded, file)
        job: Job = make_job(settings, source_of(settings, file), since=ranged[0], until=ranged[1])
        if splice:
            return list(spliced(collect(job, frozenset(), folder).values()))
        if file is not None:
            raise UsageError("a file has no labels.", hint="Take --splice.")
        labels = list(_labels(settings))
        scopes = frozenset(label.scope for label in labels)
        return labelled(collect(job, scopes, folder), labels) if labels else []


def _labels(settings: Settings) -> Iterator[Any]:
    from loopstream.replay.labels import LabelTopic, labels_topic

    topic = labels_topic(settings.prefix)
    return LabelTopic(settings.connection, topic, settings.timeout_s).read()


def _tell(settings: Settings, recorded: Path, target: Path) -> None:
    """Recorded runs as the events that their runners would have sent."""
    from loopstream.cli.recorded import Publisher, read_runs, unique
    from loopstream.events import EVENT
    from loopstream.sdk.prints import Printer
    from loopstream.wire.codec import encode_json

    publisher = Publisher(Printer((settings.deployment.profile,)), None, "", False, 0)
    if not recorded.is_file():
        raise DataError("there is no such file.", where=str(recorded))
    with recorded.open("rb") as raw, target.open("wb") as file:
        for run in unique(read_runs(raw, recorded.name)):
            for fields in publisher.events(run):
                file.write(encode_json(EVENT.validate_python(fields)) + b"\n")


def _progress(done: int, of: int) -> None:
    if sys.stderr.isatty():
        say(f"{done} of {of} settings tried")


def _write(found: dict[str, Any], out: Path) -> None:
    try:
        out.write_text(json.dumps(found, indent=2), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"can't be written: {error.strerror}.", where=str(out)) from None


def _print(found: dict[str, Any], points: list[Point], chosen: Point, output: Output) -> None:
    if output is Output.NDJSON:
        show(found["grid"], (), output)
        return
    if output is Output.JSON:
        print_line(json.dumps(found))
        return
    rows = ({n: "n/a" if v is None else v for n, v in row.items()} for row in found["grid"])
    show(rows, _COLUMNS, output)
    good, episodes = max(p.good for p in points), max(p.episodes for p in points)
    print_line(f"{good:,} good runs, {episodes:,} episodes of looping")
    if kinds := chosen.as_dict()["recall_by_kind"]:
        print_line(f"recall of the best by kind: {json.dumps(kinds)}")
    print_line("best (fewest false stops, then recall, then delay):")
    print_line(json.dumps(found["settings"]))
