"""A whole replay: planned, spread over processes, put together in the order of the partitions."""

from __future__ import annotations

import gc
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from queue import Empty
from typing import Any, Final

from loopstream.errors import CorruptStateError, DataError, LoopstreamError, UsageError
from loopstream.partition.admission import TenantKey
from loopstream.policy.deployment import Deployment
from loopstream.replay.controls import ReplaySources
from loopstream.replay.lane import LIVE_RUNS, Begin, Chosen, Lane, LanePlan, Tally
from loopstream.replay.moments import Moment
from loopstream.replay.opening import find_opening
from loopstream.replay.records import Log, Source, Window
from loopstream.replay.store import ReplayStore
from loopstream.replay.whatif import WhatIf
from loopstream.wire.routing import partition_of
from loopstream.wire.signing import Verifier

_CHECKPOINT_RECORDS: Final = 50_000
_ALL: Final = Moment()
_NOTHING: Final = Chosen()
_RECORDED: Final = WhatIf()


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What to replay; can be sent to another process.

    Attributes:
        since: report from here on; folding begins at the start of retention in any case.
        until: as if the log ended here.
        numbers: partitions; empty: those of the chosen runs, or all.
        deployment: the facts of the prefix where no pin tells them.
        processes: how many share the partitions.
        state: folder that makes the replay resumable; it must be used for this job only.
        write: write verdicts; else they are only counted.
    """

    source: Source
    deployment: Deployment
    since: Moment = _ALL
    until: Moment = _ALL
    numbers: tuple[int, ...] = ()
    chosen: Chosen = _NOTHING
    what: WhatIf = _RECORDED
    key: TenantKey | None = None
    verifier: Verifier | None = None
    processes: int = 1
    state: Path | None = None
    write: bool = True

    def fingerprint(self) -> str:
        """Names what decides the outcome, so that a state is not taken up for another job."""
        text = repr((self.source, self.deployment, self.since, self.until, self.numbers))
        text += repr((sorted(self.chosen.scopes), sorted(self.chosen.agents), self.write))
        text += repr((self.what, self.key and self.key.id, self.verifier))
        return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far one partition is."""

    number: int
    done: int
    total: int
    events: int


@dataclass(slots=True)
class Part:
    """What the replay of one partition came to."""

    number: int
    window: Window
    path: Path
    tally: Tally
    partial: list[str]
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Replayed:
    """A finished replay."""

    log: str
    partitions: int
    parts: list[Part]
    tally: Tally
    what: WhatIf
    chosen: Chosen

    @property
    def notes(self) -> list[str]:
        """What people should know before they trust the figures."""
        return [note for part in self.parts for note in part.notes]

    def lines(self) -> Iterator[bytes]:
        """The replay as NDJSON: a head, the verdicts by partition, the partial runs, an end."""
        yield _line(self._head())
        for part in self.parts:
            if part.path.exists():
                with part.path.open("rb") as lines:
                    yield from lines
        for part in self.parts:
            for scope in part.partial:
                yield _line({"type": "partial", "scope": scope})
        yield _line({"type": "end", **self.tally.as_dict(), "notes_for_people": self.notes})

    def _head(self) -> dict[str, Any]:
        spans = {str(part.number): [part.window.since, part.window.until] for part in self.parts}
        return {
            "type": "replay",
            "v": 1,
            "log": self.log,
            "partitions": self.partitions,
            "spans": spans,
            "what_if": self.what.describe() if self.what.active else None,
            "scopes": sorted(self.chosen.scopes),
            "agents": sorted(self.chosen.agents),
        }


def _line(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode() + b"\n"


Report = Callable[[Progress], None]


def replay(job: Job, folder: Path, report: Report | None = None) -> Replayed:
    """Replay a log.

    Args:
        folder: for rows and output while the replay runs; ``job.state`` takes its place.
        report: hears of progress, in this process.

    Raises:
        UsageError: no such partition, or the state belongs to another job.
        DataError: a file is corrupt, or a state is.
        LoopstreamError: Kafka is unreachable, or a topic is missing.
    """
    with job.source.open() as log:
        plans = plan(job, log)
    folder = _claim(job, folder)
    shares = _shares(plans, job.processes)
    if len(shares) <= 1:
        parts = _fold_share(job, plans, folder, report) if plans else []
    else:
        parts = _in_processes(job, shares, folder, report)
    tally = Tally()
    for part in parts:
        tally.add(part.tally)
    parts.sort(key=lambda part: part.number)
    return Replayed(log.name, log.partitions, parts, tally, job.what, job.chosen)


def plan(job: Job, log: Log) -> dict[int, Window]:
    """The window of each partition that has to be read.

    Raises:
        UsageError: no such partition.
    """
    held = log.numbers()
    numbers = job.numbers or held
    if job.chosen.scopes and not job.numbers:
        numbers = sorted({partition_of(scope, log.partitions) for scope in job.chosen.scopes})
        numbers = [number for number in numbers if number in held]
    windows = {}
    for number in numbers:
        if number not in held:
            message = f"there is no partition {number}."
            hint = f"{log.name} has {len(held)}: {held[0]} to {held[-1]}." if held else None
            raise UsageError(message, where=log.name, hint=hint)
        windows[number] = _window(job, log, number)
    return windows


def _window(job: Job, log: Log, number: int) -> Window:
    bounds = log.bounds(number)
    since = _offset(log, number, job.since, bounds.begin)
    # A time names what was there then: its own millisecond is part of it.
    until = _offset(log, number, job.until, bounds.end, past=1)
    return Window(bounds.begin, max(since, bounds.begin), min(until, bounds.end))


def _offset(log: Log, number: int, moment: Moment, default: int, past: int = 0) -> int:
    if moment.offset is not None:
        return moment.offset
    if moment.millis is not None:
        return log.offset_at(number, moment.millis + past)
    return default


def _claim(job: Job, folder: Path) -> Path:
    """The folder to work in; a state is checked to belong to this job."""
    if job.state is None:
        return folder
    mark = job.state / "job"
    try:
        job.state.mkdir(parents=True, exist_ok=True)
        if mark.exists() and mark.read_text() != job.fingerprint():
            raise UsageError(
                "holds the state of another replay.",
                where=str(job.state),
                hint="Name another folder, or delete this one.",
            )
        mark.write_text(job.fingerprint())
    except OSError as error:
        raise UsageError(f"can't be used: {error.strerror}.", where=str(job.state)) from None
    return job.state


def _shares(windows: dict[int, Window], processes: int) -> list[dict[int, Window]]:
    """Partitions by process, the biggest first to whoever has least."""
    shares: list[dict[int, Window]] = [{} for _ in range(max(1, min(processes, len(windows))))]
    sizes = [0] * len(shares)
    for number, window in sorted(windows.items(), key=lambda item: item[1].begin - item[1].until):
        least = sizes.index(min(sizes))
        shares[least][number] = window
        sizes[least] += max(0, window.until - window.begin)
    return shares


# -- one process -------------------------------------------------------------------------------


def _fold_share(
    job: Job, windows: dict[int, Window], folder: Path, report: Report | None
) -> list[Part]:
    with job.source.open() as log, ExitStack() as stack:
        stack.enter_context(_lazy_collection())
        sources = log.controls()
        if log.pins() is None:
            groups = [{number: window} for number, window in windows.items()]
        else:
            groups = [windows]  # a file is read through once for all
        parts = []
        for group in groups:
            lanes = {
                number: _lane(job, log, sources, number, window, folder, stack)
                for number, window in group.items()
            }
            _fold(log, {n: lane for n, (lane, _) in lanes.items()}, job, report)
            parts += [_part(number, lane, notes) for number, (lane, notes) in lanes.items()]
        return parts


@contextmanager
def _lazy_collection() -> Iterator[None]:
    """Let the cycle collector look rarely: a fold makes many objects and next to no garbage."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _lane(
    job: Job,
    log: Log,
    sources: ReplaySources,
    number: int,
    window: Window,
    folder: Path,
    stack: ExitStack,
) -> tuple[Lane, list[str]]:
    store = ReplayStore(folder / f"partition-{number}.sqlite", durable=job.state is not None)
    stack.callback(store.close)
    done = store.progress()
    begun = begin_of(job, log, sources, number, window) if done is None else Begin.of(done["begin"])
    if job.what.active and begun.opening.deployment.profile == "reference-2026-9":
        message = "profile reference-2026-9 has fixed thresholds: no what-if."
        raise UsageError(message, where=f"{log.name}-{number}")
    note = begun.opening.note
    found = LanePlan(
        number, log.partitions, window, begun, job.what, job.chosen, job.key, job.verifier
    )
    lane = Lane(
        found,
        sources,
        store,
        folder,
        durable=job.state is not None,
        write=job.write,
        live_runs=LIVE_RUNS,
    )
    stack.callback(lane.close)
    return lane, [] if note is None or job.what.blocks is not None else [note]


def begin_of(job: Job, log: Log, sources: ReplaySources, number: int, window: Window) -> Begin:
    """Where the fold of a partition begins, and with what in force.

    Raises:
        DataError: the pin is not understood.
    """
    bounds = log.bounds(number)
    opening = find_opening(log, number, bounds, sources, job.deployment, job.verifier)
    first_ms = 0
    if window.begin > 0:
        records = next(log.batches({number: (window.begin, window.begin + 1)}), ())
        first_ms = records[0].timestamp if records else 0
    return Begin(opening, window.begin, first_ms)


def _fold(log: Log, lanes: dict[int, Lane], job: Job, report: Report | None) -> None:
    spans = {
        number: (lane.next_offset, lane.plan.window.until)
        for number, lane in lanes.items()
        if lane.next_offset < lane.plan.window.until
    }
    unsaved = 0
    for records in log.batches(spans):
        if not records:
            continue
        lane = lanes[records[0].partition]
        try:
            lane.feed(records)
        except CorruptStateError as error:
            raise DataError(error.message, where=str(lane.path)) from None
        unsaved += len(records)
        if job.state is not None and unsaved >= _CHECKPOINT_RECORDS:
            unsaved = 0
            for each in lanes.values():
                each.checkpoint()
        if report is not None:
            report(_progress(lane))
    for lane in lanes.values():
        lane.checkpoint()
        if report is not None:
            report(_progress(lane))


def _progress(lane: Lane) -> Progress:
    window = lane.plan.window
    return Progress(
        lane.plan.number,
        lane.next_offset - window.begin,
        max(0, window.until - window.begin),
        lane.events,
    )


def _part(number: int, lane: Lane, notes: list[str]) -> Part:
    window, tally = lane.plan.window, lane.tally
    where = f"{lane.plan.deployment.prefix}.events-{number}"
    if lane.partial:
        begin, count = lane.plan.begun.offset, len(lane.partial)
        notes.append(
            f"{where}: the log begins at offset {begin}; the beginning of {count} runs is gone: "
            "they are partial, and outside equality."
        )
    if tally.holes:
        notes.append(
            f"{where}: {tally.holes} offsets are missing (compacted away, or markers of "
            "transactions): what was judged by them can't be judged again."
        )
    if tally.trusted:
        notes.append(
            f"{where}: {tally.trusted} control records could not be checked against their source; "
            "they were taken on trust."
        )
    if tally.unchecked:
        notes.append(
            f"{where}: {tally.unchecked} records are signed by runners, and were taken on trust: "
            "signing.events is off, or they come from a file."
        )
    return Part(number, window, lane.path, tally, sorted(lane.partial), notes)


# -- several processes -------------------------------------------------------------------------

_queue: Any = None


def _start(queue: Any) -> None:
    global _queue  # noqa: PLW0603 - the one way into a process of a pool
    _queue = queue


def _share(job: Job, windows: dict[int, Window], folder: Path) -> list[Part]:
    return _fold_share(job, windows, folder, _queue.put)


def _in_processes(
    job: Job, shares: Sequence[dict[int, Window]], folder: Path, report: Report | None
) -> list[Part]:
    context = get_context("spawn")
    queue = context.Queue()
    with ProcessPoolExecutor(len(shares), context, _start, (queue,)) as pool:
        futures = {pool.submit(_share, job, share, folder) for share in shares}
        waiting: set[Future[list[Part]]] = set(futures)
        try:
            while waiting:
                _, waiting = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
                _drain(queue, report)
            return [part for future in futures for part in future.result()]
        except BrokenProcessPool:
            raise LostProcessError from None
        finally:
            pool.shutdown(cancel_futures=True)
            _drain(queue, None)
            queue.close()


def _drain(queue: Any, report: Report | None) -> None:
    try:
        while True:
            progress = queue.get_nowait()
            if report is not None:
                report(progress)
    except Empty:
        return


class LostProcessError(LoopstreamError):
    """A process of the replay was ended from outside."""

    code = "lost_process"

    def __init__(self) -> None:
        super().__init__(
            "a process of the replay was ended from outside.",
            hint="With --state the next try goes on where this one was.",
        )


def clear(folder: Path) -> None:
    """Remove what a replay without ``--state`` left in its folder."""
    shutil.rmtree(folder, ignore_errors=True)
