"""Thresholds tried on runs of which it is known whether they loop."""

from __future__ import annotations

import itertools
import json
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from loopstream.detect.limits import Limits
from loopstream.engine import Engine
from loopstream.errors import UsageError
from loopstream.events import RunStarted, ToolCall, ToolOutcome
from loopstream.events.verdict import Action
from loopstream.policy.advice import NoteKind, explain
from loopstream.policy.deployment import Deployment
from loopstream.policy.settings import (
    BREAKER,
    CRITICAL,
    NUMBERS,
    WARNING,
    refuse,
    resolve,
    strict_issues,
)
from loopstream.replay.cases import Case
from loopstream.state.run import RunState

Block = Mapping[str, Any]
DEFAULT_GRID: Final[tuple[Block, ...]] = tuple(
    {
        "enabled": True,
        "historySize": max(30, critical + critical // 2),
        "warningThreshold": critical // 2,
        "criticalThreshold": critical,
        "globalCircuitBreakerThreshold": critical + critical // 2,
        "unknownToolThreshold": max(3, critical // 2),
    }
    for critical in (4, 6, 8, 10, 12, 15, 20, 25, 30, 40)
)
_STOPS: Final = frozenset((Action.BLOCK, Action.ABORT))
_MAX_GRID: Final = 2000
_ENABLED: Final[Block] = {"enabled": True}


@dataclass(frozen=True, slots=True)
class Played:
    """One case under one block; all are ordinals of calls, from 1.

    ``refused``: the recording refused here, and what comes after is censored.
    """

    stops: tuple[int, ...]
    warned: int | None
    refused: int | None


@dataclass(slots=True)
class Point:
    """How one block does."""

    block: Block
    good: int = 0
    false_runs: list[str] = field(default_factory=list)
    warned_good: int = 0
    early: int = 0
    """Looping runs that were stopped before their loop began."""
    stopped_loops: int = 0
    episodes: int = 0
    detected: int = 0
    delays: list[int] = field(default_factory=list)
    censored: int = 0
    by_kind: dict[str, list[int]] = field(default_factory=dict)
    """(detected, episodes) by kind of case."""

    @property
    def false_stops_per_1000(self) -> float:
        """False stops per 1,000 good runs."""
        return 1000 * len(self.false_runs) / self.good if self.good else 0.0

    @property
    def precision(self) -> float | None:
        """Share of the stopped runs that did loop by then; None: none was stopped, or loops."""
        stopped = self.stopped_loops + self.early + len(self.false_runs)
        return self.stopped_loops / stopped if stopped and self.episodes else None

    @property
    def recall(self) -> float | None:
        """Share of the episodes that were stopped; None: there was none."""
        return self.detected / self.episodes if self.episodes else None

    @property
    def delay(self) -> float | None:
        """Median of calls from the begin of a loop to its stop."""
        return statistics.median(self.delays) if self.delays else None

    def as_dict(self) -> dict[str, Any]:
        """JSON-like; thresholds beside the figures."""
        limits = resolve(self.block)
        return {
            "warningThreshold": limits.warning,
            "criticalThreshold": limits.critical,
            "good_runs": self.good,
            "false_stops": len(self.false_runs),
            "false_stops_per_1000": round(self.false_stops_per_1000, 2),
            "good_runs_warned": self.warned_good,
            "stopped_before_the_loop": self.early,
            "episodes": self.episodes,
            "detected": self.detected,
            "precision": _rounded(self.precision),
            "recall": _rounded(self.recall),
            "delay_calls": self.delay,
            "censored": self.censored,
            "recall_by_kind": {
                kind: round(found / of, 4) for kind, (found, of) in sorted(self.by_kind.items())
            },
            "settings": dict(self.block),
        }


def grid_of(texts: Sequence[str], base: Block = _ENABLED) -> list[Block]:
    """``key=v1,v2`` texts as blocks: every combination that means what it says.

    A threshold that is not named goes along with those that are, so that nothing is clamped: half
    of ``criticalThreshold`` for warnings, half as much again for the breaker. Combinations that
    contradict themselves are left out.

    Raises:
        UsageError: no such setting, a value it can't have, too many combinations, or none is left.
    """
    axes: list[list[tuple[list[str], Any]]] = []
    for text in texts:
        path, equals, values = text.partition("=")
        try:
            parsed = [json.loads(value) for value in values.split(",")]
        except (ValueError, RecursionError):
            parsed = []
        if not (equals and path and parsed):
            hint = "For example: --grid criticalThreshold=10,15,20"
            raise UsageError(f"--grid {text}: not KEY=VALUE,VALUE.", hint=hint)
        axes.append([(path.split("."), value) for value in parsed])
    combinations = list(itertools.islice(itertools.product(*axes), _MAX_GRID + 1))
    if len(combinations) > _MAX_GRID:
        raise UsageError(f"--grid: more than {_MAX_GRID} combinations.")
    blocks = [_consistent(_block(base, combination)) for combination in combinations]
    meant = [block for block in blocks if not _is_clamped(block)]
    if not meant:
        hint = f"{WARNING} is below {CRITICAL}, and that below {BREAKER}."
        raise UsageError("--grid: each combination contradicts itself.", hint=hint)
    return meant


def _consistent(block: Block) -> Block:
    """The block with what is not said of thresholds put where it leaves the said ones alone."""
    made = dict(block)
    critical = int(made.get(CRITICAL, NUMBERS[CRITICAL]))
    if WARNING not in made and critical <= NUMBERS[WARNING]:
        made[WARNING] = max(1, critical // 2)
    if CRITICAL not in made and int(made.get(WARNING, 0)) >= critical:
        critical = made[CRITICAL] = 2 * int(made[WARNING])
    if BREAKER not in made and critical >= NUMBERS[BREAKER]:
        made[BREAKER] = critical + critical // 2
    return made


def _is_clamped(block: Block) -> bool:
    return any(note.kind is NoteKind.CLAMPED for note in explain(block, "documented"))


def _block(base: Block, values: Sequence[tuple[list[str], Any]]) -> Block:
    block: dict[str, Any] = dict(base)
    for names, value in values:
        if len(names) == 1:
            block[names[0]] = value
        else:
            block[names[0]] = {**block.get(names[0], {}), ".".join(names[1:]): value}
    issues = [issue for issue in strict_issues(block) if not issue.startswith("order:")]
    if issues or (issues := [why for why in (refuse(block),) if why]):
        raise UsageError(f"--grid: {', '.join(issues)}.")
    return block


def tune(
    cases: Sequence[Case], grid: Sequence[Block], report: Callable[[int, int], None] | None = None
) -> list[Point]:
    """Play each case under each block.

    Args:
        report: hears (blocks done, of).
    """
    points = []
    for done, block in enumerate(grid):
        limits, point = resolve(block), Point(block)
        for case in cases:
            _score(point, case, play(case, limits))
        points.append(point)
        if report is not None:
            report(done + 1, len(grid))
    return points


def play(case: Case, limits: Limits) -> Played:
    """Fold a case from its begin, with nobody obeying."""
    engine = Engine(Deployment(prefix="tune"))
    state = RunState(case.name, 0)
    state.run, state.agent = case.name, case.agent
    stops: list[int] = []
    warned = refused = None
    calls = 0
    for event, at in case.events:
        if isinstance(event, RunStarted) and state.ended is not None:
            break  # a second life under the same id is another run
        calls += isinstance(event, ToolCall)
        if refused is None and _refusal(event):
            refused = calls
        for verdict in engine.step(state, event, limits, at).verdicts:
            if verdict.action in _STOPS and (not stops or stops[-1] != calls):
                stops.append(calls)
            elif verdict.action is Action.WARN and warned is None:
                warned = calls
    return Played(tuple(stops), warned, refused)


def _refusal(event: object) -> bool:
    if isinstance(event, ToolCall):
        return event.disposition == "refused"
    return isinstance(event, ToolOutcome) and not event.executed


def _score(point: Point, case: Case, played: Played) -> None:
    end = played.refused
    stops = [stop for stop in played.stops if end is None or stop < end]
    if end is not None and not stops:
        point.censored += 1  # nobody knows whether it would have gone on to be stopped
        return
    if not case.onsets:
        point.good += 1
        point.warned_good += played.warned is not None
        if stops:
            point.false_runs.append(case.name)
        return
    early = bool(stops) and stops[0] < case.onsets[0]
    found = [] if early else list(_detections(case.onsets, stops))
    point.early += early
    kind = point.by_kind.setdefault(case.kind, [0, 0])
    point.episodes += len(case.onsets)
    point.detected += len(found)
    point.stopped_loops += bool(found)
    point.delays += found
    kind[0] += len(found)
    kind[1] += len(case.onsets)


def _detections(onsets: Sequence[int], stops: Sequence[int]) -> Iterator[int]:
    """Calls from each loop's begin to its stop, where there is one before the next begins."""
    for onset, after in zip(onsets, [*onsets[1:], None], strict=True):
        for stop in stops:
            if stop >= onset and (after is None or stop < after):
                yield stop - onset
                break


def best(points: Sequence[Point]) -> Point:
    """The fewest false stops; among those the highest recall; among those the shortest delay."""
    return min(
        points,
        key=lambda point: (
            point.false_stops_per_1000,
            -(point.recall or 0.0),
            point.delay if point.delay is not None else float("inf"),
        ),
    )


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 4)
