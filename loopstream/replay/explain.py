"""One run explained: its partition folded up to the event asked for, watched by a `Story`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from loopstream.errors import UsageError
from loopstream.replay.lane import Chosen, Lane, LanePlan
from loopstream.replay.opening import controls_in
from loopstream.replay.origins import Origins
from loopstream.replay.run import Job, begin_of, plan
from loopstream.replay.store import ReplayStore
from loopstream.replay.story import Entry, Story


@dataclass(slots=True)
class Told:
    """What is known beside the entries; complete once they were all taken."""

    scope: str
    where: str = ""
    partial: bool = False
    notes: list[str] = field(default_factory=list)
    identity: dict[str, Any] = field(default_factory=dict)


def explain(job: Job, scope: str, folder: Path, told: Told | None = None) -> Iterator[Entry]:
    """The events of one run in order, with all that was thought of them.

    Args:
        job: source, range and settings.
        folder: for the fold's rows.
        told: filled in on the way.

    Raises:
        UsageError: the log has no event of the run.
        LoopstreamError: as `run.replay`.
    """
    told = told or Told(scope)
    with job.source.open() as log, ExitStack() as stack:
        sources = log.controls()
        chosen = Chosen(frozenset((scope,)))
        windows = plan(replace(job, chosen=chosen), log)
        count = 0
        for number, window in windows.items():
            begun = begin_of(job, log, sources, number, window)
            entries: list[Entry] = []
            origins = Origins(
                begun.opening.pin,
                made=begun.opening.note is not None,
                tried=job.what.describe() if job.what.active else None,
            )
            found = LanePlan(
                number, log.partitions, window, begun, job.what, chosen, job.key, job.verifier
            )
            story = Story(found.deployment, scope, origins, entries.append)
            store = ReplayStore(folder / f"explain-{number}.sqlite", durable=False)
            stack.callback(store.close)
            lane = Lane(found, sources, store, folder, write=False, more=[story])
            told.where = f"{log.name}-{number}"
            if begun.opening.note is not None and not job.what.active:
                told.notes.append(begun.opening.note)
            for records in log.batches({number: (window.begin, window.until)}):
                for record in records:
                    origins.see(controls_in(record, job.verifier), record.offset)
                    lane.feed((record,))
                    count += len(entries)
                    yield from entries
                    entries.clear()
            told.partial = told.partial or scope in lane.partial
            told.identity |= lane.identity(scope)
        if not count:
            hint = "Has retention taken it? `loopstream runs list` shows the runs that are known."
            raise UsageError("the log has no event of it.", where=scope.lstrip("\0"), hint=hint)
