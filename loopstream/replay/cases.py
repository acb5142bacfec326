"""Runs to try thresholds on: labelled ones, or recorded ones with loops spliced in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

from loopstream.detect.limits import Limits
from loopstream.engine import Step
from loopstream.errors import UsageError
from loopstream.events import RunEvent, ToolCall, ToolOutcome
from loopstream.policy.verdicts import Position, Trigger
from loopstream.replay.labels import Label
from loopstream.replay.lane import Chosen, Lane, LanePlan
from loopstream.replay.run import Job, begin_of, plan
from loopstream.replay.store import ReplayStore
from loopstream.state.run import RunState

MAX_EVENTS: Final = 1_000_000
"""Events of all cases together; they are kept in memory."""
REPEATS: Final = 40
SPLICED: Final = (1, 2, 3)


@dataclass(frozen=True, slots=True)
class Case:
    """One run with what is known of it.

    ``onsets``: ordinals (from 1) of the calls at which its loops begin; empty: it is good, and a
    stop would be false.
    """

    name: str
    agent: str | None
    events: tuple[tuple[RunEvent, Position], ...]
    onsets: tuple[int, ...] = ()
    kind: str = "labelled"


@dataclass(slots=True)
class _Collector:
    """Watches a fold and keeps what it applied to the chosen runs."""

    scopes: frozenset[str]
    events: dict[str, list[tuple[RunEvent, Position]]] = field(default_factory=dict)
    agents: dict[str, str | None] = field(default_factory=dict)
    count: int = 0

    def before(self, state: RunState, event: RunEvent, limits: Limits, at: Position) -> None:
        """Take an event of a chosen run."""
        if self.scopes and state.scope not in self.scopes:
            return
        self.count += 1
        if self.count > MAX_EVENTS:
            raise UsageError(f"more than {MAX_EVENTS:,} events.", hint="Take a narrower range.")
        self.events.setdefault(state.scope, []).append((event, at))
        self.agents[state.scope] = state.agent

    def after(self, state: RunState, event: RunEvent, step: Step, at: Position) -> None:
        """Nothing."""

    def commanded(self, step: Step, what: str, reason: str) -> None:
        """Nothing: thresholds are tried without operators."""


def collect(job: Job, scopes: frozenset[str], folder: Path) -> dict[str, Case]:
    """The events of runs as the fold accepts them: without duplicates, with fingerprints.

    Args:
        scopes: which runs; empty: all.

    Raises:
        UsageError: too many events to keep.
        LoopstreamError: as `run.replay`.
    """
    chosen, collector = Chosen(scopes), _Collector(scopes)
    with job.source.open() as log, ExitStack() as stack:
        sources = log.controls()
        for number, window in plan(replace(job, chosen=chosen), log).items():
            begun = begin_of(job, log, sources, number, window)
            found = LanePlan(
                number, log.partitions, window, begun, job.what, chosen, job.key, job.verifier
            )
            store = ReplayStore(folder / f"cases-{number}.sqlite", durable=False)
            stack.callback(store.close)
            lane = Lane(found, sources, store, folder, write=False, more=[collector])
            for records in log.batches({number: (window.begin, window.until)}):
                lane.feed(records)
    return {
        scope: Case(scope, collector.agents[scope], tuple(events), kind="all")
        for scope, events in collector.events.items()
    }


def labelled(cases: Mapping[str, Case], labels: Iterable[Label]) -> list[Case]:
    """Cases with what people said: a loop begins where the labelled verdict's count began."""
    onsets: dict[str, set[int]] = {}
    for label in labels:
        case = cases.get(label.scope)
        if case is None:
            continue
        found = onsets.setdefault(label.scope, set())
        if label.label == "right":
            found.add(_onset(case, label))
    return [
        replace(cases[scope], onsets=tuple(sorted(found)), kind="labelled")
        for scope, found in onsets.items()
    ]


def _onset(case: Case, label: Label) -> int:
    calls = 0
    for event, at in case.events:
        calls += isinstance(event, ToolCall)
        if at.offset >= label.offset and Trigger.of(event, at).id == label.event:
            break
    return max(1, calls - label.count + 1)


def splice(case: Case, length: int, repeats: int = REPEATS) -> Case | None:
    """The first half of a run, its last ``length`` calls repeated: a loop whose begin is known.

    Returns:
        None if the run is too short.
    """
    pairs = _pairs(case.events)
    prefix = pairs[: (len(pairs) + 1) // 2]
    if len(prefix) < length:
        return None
    tail = prefix[-length:]
    if length > 1 and len({_signature(pair[0][0]) for pair in tail}) < length:
        return None  # it would be a loop of fewer calls
    played = prefix + tail * repeats
    events: list[tuple[RunEvent, Position]] = []
    for pair in played:
        for event, at in pair:
            seq = len(events) + 1
            moved = at._replace(offset=seq)
            events.append((event.model_copy(update={"seq": seq, "id": f"s{seq}"}), moved))
    name = f"{case.name}+{length}"
    return Case(name, case.agent, tuple(events), (len(prefix) + 1,), f"spliced-{length}")


Pair = tuple[tuple[ToolCall, Position], tuple[ToolOutcome, Position]]


def _pairs(events: Sequence[tuple[RunEvent, Position]]) -> list[Pair]:
    """Calls with the outcome that follows them at once."""
    pairs: list[Pair] = []
    for (event, at), (after, after_at) in pairwise(events):
        if isinstance(event, ToolCall) and isinstance(after, ToolOutcome):
            pairs.append(((event, at), (after, after_at)))
    return pairs


def _signature(call: ToolCall) -> tuple[str, bytes | None]:
    digests = None if call.fp is None else call.fp.documented
    return call.tool, None if digests is None else digests.args


def spliced(cases: Iterable[Case], lengths: Sequence[int] = SPLICED) -> Iterator[Case]:
    """Each case as it is, and with loops of each length spliced in."""
    for case in cases:
        yield replace(case, onsets=(), kind="good")
        for length in lengths:
            if (made := splice(case, length)) is not None:
                yield made
