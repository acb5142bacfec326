"""The forecast law: a call would be judged critical exactly if a standing target covers it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loopstream.detect.judge import judge
from loopstream.detect.limits import Limits
from loopstream.engine import Step
from loopstream.events import Action, Control, Level, Verdict
from loopstream.events.tool import Disposition
from loopstream.state.run import RunState, Target
from tests.engine.driver import Driver
from tests.engine.naive import Call, Compacted, NaiveStep
from tests.engine.strategies import (
    CALLS,
    RUNNING,
    call_of,
    limits,
    outcome_of,
    signature,
    steps,
)

# Shrinking a counterexample may take minutes; finding none takes seconds.
pytestmark = pytest.mark.timeout(600)
LAW = settings(
    max_examples=200,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
UNSEEN_TOOLS = (*sorted({tool for tool, _, _ in CALLS}), "never_called")


@dataclass(frozen=True)
class Release:
    """An operator lets the run go on."""


@dataclass(frozen=True)
class Abort:
    """An operator ends the run."""


Move = tuple[NaiveStep, Disposition] | Limits | Release | Abort


@st.composite
def moves(draw: st.DrawFn, *, latest: bool) -> list[Move]:
    """One run's steps, with operators and new settings in between."""
    played: list[Move] = []
    for stretch in draw(st.lists(steps(latest=latest, runs=("r1",), max_parts=3), max_size=6)):
        between = draw(st.integers(0, 5))
        if between == 0:
            played.append(draw(limits()))
        elif between == 1:
            played.append(draw(st.builds(Release) | st.builds(Release) | st.builds(Abort)))
        how = draw(st.sampled_from(RUNNING))
        played.extend((step, how) for step in stretch)
    return played


class Ledger:
    """What a runner believes: blocks that were published and not released.

    Verdicts in shadow are not acted on; what else is published comes from a detector that may.
    """

    def __init__(self) -> None:
        self.targets: set[Target] = set()

    def hear(self, verdicts: Iterable[Verdict]) -> None:
        for verdict in verdicts:
            if verdict.mode == "shadow":
                continue
            named = {Target(t.signature, t.tool, t.exclude) for t in verdict.applies_to}
            if verdict.action is Action.BLOCK:
                self.targets |= named
            elif verdict.action is Action.RELEASE:
                self.targets -= named


class Run:
    """One run under the law."""

    def __init__(self, settled: Limits, *, latest: bool) -> None:
        self.driver = Driver(settled, latest=latest, announce="first")
        self.state: RunState = self.driver.state("r1")
        self.ledger = Ledger()
        self.seen: Counter[str] = Counter()

    def move(self, move: Move) -> None:
        if isinstance(move, Limits):
            self.driver.limits = move
            return  # counts from the run's next event on
        step = self._apply(move)
        self.ledger.hear(step.verdicts)
        self.check()
        self.check_modes(step)
        self.seen[type(move).__name__] += bool(step.verdicts)

    def _apply(self, move: tuple[NaiveStep, Disposition] | Release | Abort) -> Step:
        if isinstance(move, tuple):
            return self.driver.play(*move)
        step = Step(self.state, self.driver.limits, COMMAND, self.driver.at)
        if isinstance(move, Release):
            return self.driver.engine.release(step, "go on")
        return self.driver.engine.abort(step, "stop")

    def check(self) -> None:
        history, standing = self.state.history, self.state.standing
        asked = {(c.tool, c.signature, c.poll) for c in history.calls.values()}
        for tool in UNSEEN_TOOLS:
            polls = (False,) if tool in {"read", "exec"} else (False, True)
            asked |= {(tool, signature(tool, "unseen"), poll) for poll in polls}
        for tool, named, poll in asked:
            finding = judge(
                self.driver.engine.profile,
                history,
                self.driver.limits,
                tool,
                named,
                poll=poll,
                mutes=self.state.mutes,
            )
            critical = finding is not None and finding.level is Level.CRITICAL
            covered = any(target.covers(tool, named) for target in standing)
            assert critical == covered, (tool, named, poll, finding, list(standing))
            self.seen["covered"] += covered
        assert self.ledger.targets == set(standing)

    def check_modes(self, step: Step) -> None:
        """Nothing is refused or ended but by detectors that are enforced; the rest is marked."""
        settled = self.driver.limits
        held = {} if settled.rollout is None else dict(settled.rollout.modes)
        held["compaction_loop_persisted"] = settled.guard_mode
        for verdict in step.verdicts:
            mode = held.get(verdict.detector, "enforce")
            assert (verdict.mode == "shadow") == (mode == "shadow") or verdict.action == "release"
            if verdict.mode == "enforce" and verdict.action in {Action.BLOCK, Action.ABORT}:
                assert mode == "enforce"
                self.seen["enforced"] += 1
            assert (verdict.instead_of is None) or (verdict.action, mode) == (Action.WARN, "warn")
            self.seen["held back"] += verdict.instead_of is not None
            self.seen["shadow"] += verdict.mode == "shadow"


COMMAND = Control(
    v=1, type="control", time=0, source="commands", offset=0, sha256=b"0" * 32, key="r1"
)


@pytest.mark.slow
@pytest.mark.parametrize("latest", [False, True])
def test_forecast_is_the_judgement_of_the_next_call(latest: bool) -> None:
    seen: Counter[str] = Counter()

    @LAW
    @given(limits(), moves(latest=latest))
    def law(settled: Limits, played: list[Move]) -> None:
        run = Run(settled, latest=latest)
        for move in played:
            run.move(move)
        seen.update(run.seen)

    law()
    assert seen["covered"] > 100
    assert seen["Release"] > 5
    assert seen["Abort"] > 5
    assert min(seen["enforced"], seen["held back"], seen["shadow"]) > 5


# -- what the law found, as examples ---------------------------------------------------------

TINY = Limits(
    enabled=True, warning=1, critical=3, breaker=5, unknown_tool=9, history_size=30, ping_pong=False
)


def stuck(run: Run, spec: int, times: int, what: str = "ok", *, latest: bool = False) -> None:
    for _ in range(times):
        outcome = outcome_of(spec, what, None, "r1", latest=latest)
        run.move((call_of(spec, None, "r1"), "executed"))
        run.move((outcome, "executed"))


def fail_across(run: Run) -> None:
    """Three commands, one cause."""
    for spec in (3, 4, 5):
        stuck(run, spec, 1, "failure 1", latest=True)


def test_an_operators_release_covers_commands_not_tried_yet() -> None:
    run = Run(TINY, latest=True)
    fail_across(run)
    assert [target.tool for target in run.state.standing if target.tool] == ["exec"]
    run.move(Release())
    assert run.state.standing == {}
    judged = run.driver.play(Call("exec", signature("exec", "new"), run="r1")).judgement
    assert judged is None or judged.level is not Level.CRITICAL


def test_an_operators_release_reaches_the_rule_behind_the_first() -> None:
    run = Run(replace(TINY, unknown_tool=2), latest=False)
    stuck(run, 0, 6, "unknown x")
    run.move(Release())
    assert run.state.standing == {}
    assert run.ledger.targets == set()


def test_a_refused_command_is_told_what_stands_against_it() -> None:
    run = Run(TINY, latest=True)
    fail_across(run)
    standing = set(run.state.standing)
    step = run.driver.play(Call("exec", signature("exec", "new"), run="r1"), "refused")
    run.ledger.hear(step.verdicts)
    assert [verdict.action for verdict in step.verdicts] == [Action.BLOCK]
    assert run.ledger.targets == standing == set(run.state.standing)


def test_what_was_blocked_under_new_settings_is_released() -> None:
    run = Run(replace(TINY, critical=9, breaker=10, history_size=3), latest=False)
    stuck(run, 0, 3)
    run.move(replace(TINY, history_size=3))
    step = run.driver.play(call_of(0, None, "r1"))
    assert [verdict.action for verdict in step.verdicts] == [Action.BLOCK, Action.RELEASE]
    assert run.state.standing == {}


def test_one_verdict_releases_all_that_has_one_key() -> None:
    run = Run(replace(TINY, ping_pong=True, critical=4), latest=False)
    for turn in range(12):
        run.move((outcome_of((0, 1)[turn % 2], "ok", None, "r1", latest=False), "executed"))
    assert len(run.state.standing) == 2
    run.driver.limits = replace(TINY, enabled=False)
    step = run.driver.play(Compacted("r1"))
    run.ledger.hear(step.verdicts)
    assert run.ledger.targets == set()
    assert len({verdict.id for verdict in step.verdicts}) == len(step.verdicts)
