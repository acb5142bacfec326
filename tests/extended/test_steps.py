"""The incremental period against one that looks at everything each time."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from loopstream.state.extended.steps import MAX_PERIOD, Steps

TOKENS = st.lists(st.integers(1, 4), min_size=1, max_size=120)
LAPPED = st.builds(
    lambda head, lap, times: head + lap * times,
    TOKENS,
    st.lists(st.integers(1, 9), min_size=1, max_size=18),
    st.integers(1, 8),
)


def naive_period(tokens: list[int], laps: int) -> int:
    for period in range(1, MAX_PERIOD + 1):
        tail = tokens[-period * laps :]
        if len(tail) == period * laps and tail == tail[:period] * laps:
            return period
    return 0


def naive_laps(tokens: list[int], period: int) -> int:
    laps = 1
    while len(tokens) >= period * (laps + 1) and (
        tokens[-period * (laps + 1) :] == tokens[-period:] * (laps + 1)
    ):
        laps += 1
    return laps


@settings(max_examples=150, deadline=None)
@given(st.one_of(TOKENS, LAPPED), st.integers(2, 9))
def test_the_smallest_period_of_the_suffix(tokens: list[int], laps: int) -> None:
    steps = Steps()
    for at, token in enumerate(tokens):
        steps.add(token, f"t:{token}", 0, at)
        period = steps.period(laps)
        assert period == naive_period(tokens[: at + 1], laps)
        if period:
            seen = tokens[: at + 1]
            assert steps.laps(period) == naive_laps(seen, period)
            assert steps.cycle(period) == tuple(sorted({f"t:{t}" for t in seen[-period:]}))


def test_a_batch_is_one_step_in_any_order() -> None:
    steps = Steps()
    for lap in range(6):
        for token in (1, 2, 3) if lap % 2 else (3, 1, 2):
            steps.add(token, f"t:{token}", lap + 1, lap)
    steps.close(0, 6)
    assert steps.period(5) == 1
    assert steps.laps(1) == 6
    assert steps.cycle(1) == ("t:1", "t:2", "t:3")
