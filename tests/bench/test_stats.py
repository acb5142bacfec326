from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.kit.stats import Spread, percentiles, quantile, ratio

VALUES = st.lists(st.floats(0.1, 1e6), min_size=1, max_size=50)


def test_a_ratio_is_the_median_of_the_ratios_within_rounds() -> None:
    # The machine was half as fast in the second round: medians of each side would tell 1.5.
    assert ratio([200.0, 100.0, 300.0], [100.0, 50.0, 100.0]) == 2.0


def test_rounds_that_do_not_pair_up_have_no_ratio() -> None:
    with pytest.raises(ValueError, match="shorter"):
        ratio([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="no rounds"):
        ratio([], [])


def test_quantiles_are_values_that_were_measured() -> None:
    values = [float(number) for number in range(1, 101)]
    assert [quantile(values, share) for share in (0.0, 0.5, 0.99, 1.0)] == [1.0, 50.0, 99.0, 100.0]
    assert quantile([7.0], 0.99) == 7.0


def test_nothing_is_told_of_no_values_but_their_number() -> None:
    assert percentiles([]) == {"count": 0.0}
    with pytest.raises(ValueError, match="no values"):
        quantile([], 0.5)
    with pytest.raises(ValueError, match="no round"):
        Spread.of([])


@given(VALUES)
def test_percentiles_rise(values: list[float]) -> None:
    told = percentiles(values)
    assert min(values) <= told["p50"] <= told["p90"] <= told["p99"] <= told["max"] == max(values)


@given(VALUES)
def test_a_spread_holds_its_median(values: list[float]) -> None:
    spread = Spread.of(values)
    assert spread.least <= spread.median <= spread.greatest
