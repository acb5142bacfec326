"""``loopstream replay``: the recorded events through the same engine again."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loopstream.cli.console import Output, print_line, say, show
from loopstream.cli.forensics import (
    Agents,
    Events,
    Overlay,
    Partitions,
    Runs,
    SettingsFile,
    Since,
    Until,
    forensic_settings,
    make_job,
    moment,
    progress_bar,
    say_notes,
    scopes_of,
    scratch,
    source_of,
    what_if,
)
from loopstream.cli.options import Bootstrap, ConfigFile, OutputForm, Prefix
from loopstream.cli.verdicts import FailOn
from loopstream.errors import EXIT_VERDICT, UsageError

if TYPE_CHECKING:
    from loopstream.config import Settings
    from loopstream.replay.run import Replayed

_RANK = {FailOn.WARNING: 1, FailOn.CRITICAL: 2}
_COLUMNS = ("detector", "action", "verdicts", "first")


def replay(
    file: Events = None,
    since: Since = None,
    until: Until = None,
    partition: Partitions = None,
    run: Runs = None,
    agent: Agents = None,
    settings_file: SettingsFile = None,
    overlay: Overlay = None,
    processes: Annotated[
        int, typer.Option("--processes", "-j", min=1, max=64, help="Share the partitions.")
    ] = 1,
    state: Annotated[
        Path | None,
        typer.Option("--state", help="Folder that keeps progress: interrupted, it goes on there."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write head, verdicts and end here, as NDJSON.")
    ] = None,
    to_topic: Annotated[
        str | None, typer.Option("--to-topic", help="Send the verdicts to this topic.")
    ] = None,
    fail_on: Annotated[
        FailOn | None,
        typer.Option("--fail-on", help="Exit with 1 if any verdict is of this level or above."),
    ] = None,
    output: OutputForm = Output.TABLE,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    config: ConfigFile = None,
) -> None:
    """Fold recorded events again: what was decided, or what other settings would have decided.

    The same engine, and the same history of settings, which is in the log itself. A range is
    warmed up from the start of retention, and only the range is reported.

    ```console
    $ loopstream replay --since 2026-11-29 --until 2026-11-30T03:12
    $ loopstream replay --set warningThreshold=15 --processes 2
    $ loopstream replay --out monday.ndjson && loopstream diff monday.ndjson recorded
    ```

    Runs whose beginning retention has taken are `partial`. With other settings each run's first
    verdict counts; what follows a recorded refusal is `censored`: nobody knows what the agent
    would have done.
    """
    from loopstream.replay.lane import Chosen
    from loopstream.replay.run import replay as run_replay

    settings = forensic_settings(bootstrap, prefix, config)
    if to_topic is not None:
        _check_target(settings, to_topic)
    job = make_job(
        settings,
        source_of(settings, file),
        since=moment(since),
        until=moment(until),
        numbers=tuple(partition or ()),
        chosen=Chosen(scopes_of(run), frozenset(agent or ())),
        what=what_if(settings_file, overlay),
        processes=processes,
        state=state,
        write=out is not None or to_topic is not None or output is Output.NDJSON,
    )
    with scratch() as folder:
        began = time.monotonic()
        with progress_bar("replaying") as report:
            done = run_replay(job, folder, report)
        seconds = time.monotonic() - began
        if out is not None:
            _write(done, out)
        if to_topic is not None:
            _send(settings, done, to_topic)
        _print(done, output, seconds)
    _say_empty(done, run)
    say_notes(done.notes)
    if fail_on is not None and done.tally.worst >= _RANK[fail_on]:
        raise typer.Exit(EXIT_VERDICT)


def _write(done: Replayed, out: Path) -> None:
    try:
        with out.open("wb") as file:
            file.writelines(done.lines())
    except OSError as error:
        raise UsageError(f"can't be written: {error.strerror}.", where=str(out)) from None


def _print(done: Replayed, output: Output, seconds: float) -> None:
    if output is Output.NDJSON:
        for raw in done.lines():
            sys.stdout.write(raw.decode())
        sys.stdout.flush()
        return
    tally = done.tally
    summary = {
        "log": done.log,
        "partitions": {
            str(part.number): {"since": part.window.since, "until": part.window.until}
            for part in done.parts
        },
        "what_if": done.what.describe() if done.what.active else None,
        **tally.as_dict(),
        "partial_runs": sum(len(part.partial) for part in done.parts),
        "seconds": round(seconds, 3),
    }
    if output is Output.JSON:
        show([summary], (), output)
        return
    if tally.verdicts:
        show(_rows(done), _COLUMNS if done.what.active else _COLUMNS[:3], output)
    for line in _lines(done, summary):
        print_line(line)


def _rows(done: Replayed) -> Iterator[dict[str, Any]]:
    tally = done.tally
    for name, count in sorted(tally.by_detector.items(), key=lambda item: -item[1]):
        detector, _, action = name.partition("/")
        first = tally.first[name]
        yield {"detector": detector, "action": action, "verdicts": count, "first": first}


def _lines(done: Replayed, summary: dict[str, Any]) -> Iterator[str]:
    tally, seconds = done.tally, summary["seconds"]
    rate = tally.events / max(seconds, 0.001)
    yield (
        f"{tally.events:,} events of {tally.runs:,} runs in {tally.records:,} records, "
        f"{seconds:.1f} s, {rate:,.0f} events/s"
    )
    yield f"{tally.verdicts:,} verdicts, {summary['partial_runs']:,} partial runs"
    if rejects := sum(tally.rejects.values()):
        yield f"{rejects:,} events refused: {dict(tally.rejects)}"
    if done.what.active:
        yield f"what if: {done.what.describe()}"
        yield (
            f"first verdicts: {sum(tally.first.values()):,} runs, of which {tally.stopped:,} "
            f"stopped; censored (after a recorded refusal): {tally.censored:,} verdicts"
        )


def _say_empty(done: Replayed, runs: list[str] | None) -> None:
    """An empty range and an unknown run get an answer, not silence.

    Raises:
        UsageError: a run was asked for that the log does not know.
    """
    if all(part.window.empty for part in done.parts):
        say("the range is empty: there is no event in it")
    elif runs and not done.tally.events:
        hint = "Has retention taken it? `loopstream runs list` shows the runs that are known."
        raise UsageError("the log has no event of it.", where=", ".join(runs), hint=hint)


def _check_target(settings: Settings, topic: str) -> None:
    from loopstream.runtime.topics import plan

    if topic in {each.name for each in plan(settings.prefix, 1)}:
        hint = "Runners obey what is in it; a replay goes to a topic of its own."
        raise UsageError("is a topic of the live system.", where=topic, hint=hint)


def _send(settings: Settings, done: Replayed, topic: str) -> None:
    from loopstream.cli import kafka
    from loopstream.wire.verdicts import decode_verdict, encode_model

    kafka.require_topic(settings, topic)
    count = 0
    with kafka.producer(settings, linger_ms=20) as client:
        sent = kafka.Confirmations(client, settings)
        for part in done.parts:
            with part.path.open("rb") as lines:
                for line in lines:
                    verdict = decode_verdict(line)
                    key, value = verdict.scope.encode(), encode_model(verdict)
                    sent.add(client.send(topic, key=key, value=value))
                    count += 1
        sent.wait()
    say(f"sent {count} verdicts to {topic}")
