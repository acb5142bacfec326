"""The incremental engine against the naive one, step by step."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loopstream.detect.base import Finding
from loopstream.detect.limits import Limits
from loopstream.engine import Step
from loopstream.policy.deployment import Announce
from tests.engine.driver import Driver, scope_of
from tests.engine.naive import Call, Found, Naive, NaiveStep, Outcome, Watched
from tests.engine.strategies import limits, steps

# Shrinking a counterexample may take minutes; finding none takes seconds.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

LAW = settings(
    max_examples=250,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
MODES = [(latest, session) for latest in (False, True) for session in (False, True)]


def found_of(finding: Finding | None) -> Found | None:
    if finding is None:
        return None
    return Found(
        finding.level.value,
        finding.detector.value,
        finding.count,
        finding.key,
        finding.paired_tool,
        finding.liveness,
        finding.capped,
    )


def watched_of(step: Step) -> Watched | None:
    guard = step.guard
    if not step.recorded:
        return None
    return Watched(guard.abort, guard.armed, guard.remaining, guard.count)


def shadow_of(naive: Naive, call: Call) -> list[tuple[str, str, int]]:
    found = naive.in_shadow(call)
    if found is None:
        return []
    return [("block" if found.level == "critical" else "warn", found.detector, found.count)]


def shadows_in(step: Step) -> list[tuple[str, str, int]]:
    """Blocks and warnings that are marked; they stand against nothing."""
    marked = [verdict for verdict in step.verdicts if verdict.mode == "shadow"]
    return [(verdict.action.value, verdict.detector, verdict.count) for verdict in marked]


class Both:
    """Both engines side by side; naive has one history a run where the product has."""

    def __init__(
        self, settled: Limits, *, latest: bool, session: bool, veto: bool, first: bool = False
    ) -> None:
        announce: Announce = "first" if first else "reference"
        self.product = Driver(settled, latest=latest, veto=veto, session=session, announce=announce)
        self._fresh = Naive(settled, latest=latest, veto=veto, first=first)
        self._session = session
        self._naive: dict[str, Naive] = {}
        self.seen: Counter[str] = Counter()

    def play(self, step: NaiveStep) -> None:
        naive = self._naive_of(step.run)
        played = self.product.play(step)
        if isinstance(step, Call):
            expected = shadow_of(naive, step)
            found, announced = naive.call(step)
            assert found_of(played.judgement) == found
            assert played.announced == announced
            assert shadows_in(played) == expected
            self.seen.update(f"shadow {action}" for action, _, _ in expected)
            self.seen["held back"] += found is not None and found.capped
            self.seen[f"{found.level} {found.detector}" if found else "nothing"] += 1
            self.seen["announced"] += announced
        elif isinstance(step, Outcome):
            watched = naive.outcome(step)
            assert watched_of(played) == watched
            self.seen["abort"] += watched is not None and watched.abort
        else:
            naive.compacted(step)
        assert self.product.history_length(step.run) == len(naive.history)

    def _naive_of(self, run: str | None) -> Naive:
        scope = "" if self._session else scope_of(run)
        if scope not in self._naive:
            self._naive[scope] = deepcopy(self._fresh)
        return self._naive[scope]


# The law says little about a rule that the made-up sessions never reach.
REACHED = (
    "critical unknown_tool_repeat",
    "critical global_circuit_breaker",
    "critical known_poll_no_progress",
    "warning known_poll_no_progress",
    "critical ping_pong",
    "warning ping_pong",
    "critical generic_repeat",
    "warning generic_repeat",
    "announced",
    "abort",
    "held back",
    "shadow block",
    "shadow warn",
)
REACHED_FIXED = (
    "warning argument_churn",
    "critical generic_repeat",
    "critical global_circuit_breaker",
    "warning generic_repeat",
    "warning ping_pong",
    "announced",
)


@pytest.mark.parametrize(("latest", "session"), MODES)
def test_incremental_equals_naive(latest: bool, session: bool) -> None:
    seen: Counter[str] = Counter()

    @LAW
    @given(limits(), steps(latest=latest), st.booleans(), st.booleans())
    def law(settled: Limits, played: list[NaiveStep], veto: bool, first: bool) -> None:
        both = Both(settled, latest=latest, session=session, veto=veto, first=first)
        for step in played:
            both.play(step)
        seen.update(both.seen)

    law()
    assert [rule for rule in REACHED if seen[rule] < 5] == []


def test_incremental_equals_naive_under_the_fixed_settings() -> None:
    seen: Counter[str] = Counter()
    settled = Limits(enabled=True)

    @LAW
    @given(steps(latest=True, runs=("r1",), max_parts=16), st.booleans())
    def law(played: list[NaiveStep], veto: bool) -> None:
        both = Both(settled, latest=True, session=False, veto=veto)
        for step in played:
            both.play(step)
        seen.update(both.seen)

    law()
    assert [rule for rule in REACHED_FIXED if seen[rule] < 5] == []


@settings(LAW, max_examples=100)
@given(st.lists(limits(), min_size=2, max_size=4), st.lists(steps(max_parts=3), max_size=6))
def test_equal_under_settings_that_change(
    changes: list[Limits], stretches: list[list[NaiveStep]]
) -> None:
    naive, product = Naive(changes[0]), Driver(changes[0])
    for turn, stretch in enumerate(stretches):
        now = changes[turn % len(changes)]
        naive.limits = product.limits = now
        for step in stretch:
            if scope_of(step.run) != "r1":
                continue
            played = product.play(step)
            if isinstance(step, Call):
                expected = shadow_of(naive, step)
                assert found_of(played.judgement) == naive.call(step)[0]
                assert shadows_in(played) == expected
            elif isinstance(step, Outcome):
                assert (naive.outcome(step) is not None) == played.recorded
            assert product.history_length("r1") == len(naive.history)
