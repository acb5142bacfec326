"""``loopstream label``: was a verdict right?"""

from __future__ import annotations

import getpass
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from loopstream.cli.console import say
from loopstream.cli.forensics import forensic_settings, verdict_topic
from loopstream.cli.options import Bootstrap, ConfigFile, Prefix
from loopstream.errors import UsageError

if TYPE_CHECKING:
    from loopstream.config import Settings
    from loopstream.events import Verdict

_LEAST: Final = 6


class Judgement(StrEnum):
    """What a person says of a verdict."""

    RIGHT = "right"
    WRONG = "wrong"
    NONE = "none"


def label(
    verdict: Annotated[str, typer.Argument(help="Verdict id, or its beginning if that is clear.")],
    judgement: Annotated[Judgement, typer.Argument(help="`none` takes a label away.")],
    note: Annotated[str | None, typer.Option("--note", help="Why.")] = None,
    by: Annotated[str | None, typer.Option("--by", help="Who; default: you.")] = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    config: ConfigFile = None,
) -> None:
    """Say of a verdict whether it was right; `tune` learns from it.

    Kept on the compacted topic PREFIX.labels, which is made with the first label.

    ```console
    $ loopstream verdicts -o ndjson | jq -r 'select(.action == "block") | .id'
    $ loopstream label 5f0c2a91 wrong --note "it was waiting for a build"
    ```
    """
    from loopstream.cli import kafka
    from loopstream.replay.labels import MAX_NOTE, label_of, labels_topic

    settings = forensic_settings(bootstrap, prefix, config)
    if note is not None and len(note) > MAX_NOTE:
        raise UsageError(f"--note: over {MAX_NOTE} characters.")
    found = _find(settings, verdict.lower())
    topic = labels_topic(settings.prefix)
    _ensure(settings, topic)
    value = None
    if judgement is not Judgement.NONE:
        said: Literal["right", "wrong"] = "right" if judgement is Judgement.RIGHT else "wrong"
        now_ms = int(time.time() * 1000)
        made = label_of(found, said, now_ms, note, (by or _user())[:128])
        value = made.model_dump_json(exclude_none=True).encode()
    with kafka.producer(settings) as client:
        client.send(topic, key=found.id.encode(), value=value).get(timeout=settings.timeout_s)
    about = f"{found.action.value} by {found.detector} on run {found.run or found.scope}"
    say(f"{found.id} ({about}): {judgement.value}")


def _find(settings: Settings, name: str) -> Verdict:
    """The verdict of an id or the beginning of one.

    Raises:
        UsageError: there is none, or more than one.
    """
    if len(name) < _LEAST:
        raise UsageError(f"give at least {_LEAST} digits of the id.", where=name)
    found: dict[str, Verdict] = {}
    for one in verdict_topic(settings).read():
        if one.verdict.id.startswith(name):
            found[one.verdict.id] = one.verdict
    if not found:
        hint = "`loopstream verdicts -o ndjson` shows ids."
        raise UsageError("the verdict topic has no such verdict.", where=name, hint=hint)
    if len(found) > 1:
        raise UsageError(f"{len(found)} verdicts begin so: {', '.join(list(found)[:5])}.")
    return next(iter(found.values()))


def _ensure(settings: Settings, topic: str) -> None:
    """Create the labels topic if it is not there."""
    from kafka.errors import TopicAlreadyExistsError

    from loopstream.cli import kafka

    with kafka.consumer(settings) as client:
        if client.partitions_for_topic(topic):
            return
    with kafka.admin(settings) as admin:
        plan = {
            topic: {
                "num_partitions": 1,
                "replication_factor": settings.replication_factor,
                "configs": {"cleanup.policy": "compact"},
            }
        }
        try:
            millis = int(settings.timeout_s * 1000)
            admin.create_topics(plan, timeout_ms=millis, wait_for_metadata=True)
        except TopicAlreadyExistsError:
            return
    say(f"created {topic}")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
