"""The run summaries that workers keep on the ``.runs`` topic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from loopstream.cli.console import say
from loopstream.errors import UsageError

if TYPE_CHECKING:
    from loopstream.config import Settings


def read_summaries(settings: Settings, scope: str | None = None) -> dict[str, dict[str, Any]]:
    """The latest summary of each run by scope key; with ``scope`` of that run alone.

    Raises:
        LoopstreamError: Kafka is unreachable, or the topic is missing.
    """
    summaries: dict[str, dict[str, Any]] = {}
    for key, summary in changes(settings, scope):
        if summary is None:
            summaries.pop(key, None)
        else:
            summaries[key] = summary
    return summaries


def changes(
    settings: Settings, scope: str | None = None, *, follow: bool = False
) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Scope key and summary, in the order in which they were written; None: the run is forgotten.

    Args:
        settings: of the process.
        scope: this run alone.
        follow: go on when the end is reached.

    Raises:
        LoopstreamError: Kafka is unreachable, or the topic is missing.
    """
    from loopstream.cli import kafka
    from loopstream.cli.tail import Tail
    from loopstream.runtime.topics import Topics
    from loopstream.wire.routing import partition_of

    topic = Topics(settings.prefix).runs
    with kafka.consumer(settings) as client:
        partitions = kafka.partitions_of(client, topic)
        if scope is not None:
            partitions = [partitions[partition_of(scope, len(partitions))]]
        tail = Tail(client, partitions, follow=follow, timeout_s=settings.timeout_s)
        for record in tail.records():
            key = (record.key or b"").decode("utf-8", "replace")
            if scope is not None and key != scope:
                continue
            if record.value is None:
                yield key, None
            elif (summary := _parsed(record)) is not None:
                yield key, summary


def told(row: dict[str, Any]) -> dict[str, Any]:
    """A summary as tables show it: blocked calls by that name, a standing in shadow marked."""
    standing = f"{row['status']} (shadow)" if row.get("mode") == "shadow" else row["status"]
    return row | {"status": standing, "blocked_calls": row["blocks"], "shadow": row["shadow"]}


def scope_of(run: str) -> str:
    """The scope key of a run as it is named on the command line.

    Raises:
        UsageError: a blank name.
    """
    from loopstream.wire.routing import scope_key

    scope = scope_key(run, None)
    if scope is None:
        raise UsageError("a run's id is not blank.")
    return scope


def _parsed(record: Any) -> dict[str, Any] | None:
    from pydantic import ValidationError

    from loopstream.events.summary import RunSummary

    try:
        summary = RunSummary.model_validate_json(record.value)
    except ValidationError:
        say(f"{record.topic}-{record.partition}@{record.offset}: not a run summary, left out")
        return None
    return summary.model_dump(mode="json", exclude_none=True)
