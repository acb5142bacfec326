"""``loopstream tail``: records as they come, in kcat's envelope."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loopstream.cli.forensics import Runs, Since, forensic_settings, moment, scopes_of
from loopstream.cli.options import Bootstrap, ConfigFile, Prefix

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loopstream.config import Settings


class Topic(StrEnum):
    """Which topic of the prefix."""

    EVENTS = "events"
    VERDICTS = "verdicts"
    DEAD_LETTERS = "dead-letters"
    RUNS = "runs"
    CONFIG = "config"
    COMMANDS = "commands"


def tail(
    topic: Annotated[Topic, typer.Argument(help="Topic of the prefix.")] = Topic.EVENTS,
    since: Since = None,
    run: Runs = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on as they come, until Ctrl-C.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, help="Stop after so many.")
    ] = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    config: ConfigFile = None,
) -> None:
    """Print records one a line in the envelope of `kcat -J`, so that pipes work.

    Payloads in msgpack are written as JSON text. What is printed can be replayed from a file.

    ```console
    $ loopstream tail | jq -r '.payload | fromjson? | .events[]? | .tool // empty'
    $ loopstream tail --since 2h > incident.jsonl && loopstream replay incident.jsonl
    ```
    """
    settings = forensic_settings(bootstrap, prefix, config)
    try:
        for line in islice(_lines(settings, topic, since, run, follow), limit):
            sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")
            if follow:
                sys.stdout.flush()
        sys.stdout.flush()
    except KeyboardInterrupt:
        if not follow:
            raise


def _lines(
    settings: Settings, topic: Topic, since: str | None, runs: list[str] | None, follow: bool
) -> Iterator[dict[str, Any]]:
    from loopstream.replay.envelope import to_envelope
    from loopstream.replay.kafka import TopicReader, connected
    from loopstream.replay.lane import Chosen

    name = f"{settings.prefix}.{topic.value}"
    wanted = Chosen(scopes_of(runs))
    begin = moment(since)
    with connected(settings.connection, settings.timeout_s) as client:
        reader = TopicReader(client, name, settings.timeout_s)
        starts = {}
        for number in reader.numbers():
            bounds = reader.bounds(number)
            start = bounds.begin if begin.offset is None else max(begin.offset, bounds.begin)
            if begin.millis is not None:
                start = reader.offset_at(number, begin.millis)
            starts[number] = (start, bounds.end)
        for record in reader.follow(starts, for_ever=follow):
            if wanted.may_concern(record.key, record.value):
                yield to_envelope(record, name, events=topic is Topic.EVENTS)
