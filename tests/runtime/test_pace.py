"""When a checkpoint is due: by what its rows cost per event, within two bounds of time."""

from __future__ import annotations

import pytest

from loopstream.runtime.pace import EVENTS_PER_ROW, FEW_ROWS, Pace

MANY = FEW_ROWS + 1


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pace(clock: Clock) -> Pace:
    return Pace(0.5, 10.0, max_dirty_rows=1000, clock=clock)


@pytest.mark.parametrize(
    ("dirty", "applied", "due"),
    [
        pytest.param(FEW_ROWS, FEW_ROWS, True, id="few rows"),
        pytest.param(MANY, MANY, False, id="a row an event"),
        pytest.param(MANY, MANY * EVENTS_PER_ROW, True, id="hot runs"),
        pytest.param(1000, 1000, True, id="memory is full"),
    ],
)
def test_rows_are_written_once_events_have_paid_for_them(
    pace: Pace, dirty: int, applied: int, due: bool
) -> None:
    assert pace.due(dirty, applied) is due


def test_no_row_waits_for_longer_than_the_longest_interval(pace: Pace, clock: Clock) -> None:
    clock.now += 9.9
    assert not pace.due(MANY, MANY)
    clock.now += 0.2
    assert pace.due(MANY, MANY)
    pace.took(MANY)
    assert not pace.due(MANY, 2 * MANY)


def test_what_an_earlier_checkpoint_took_pays_for_nothing(pace: Pace) -> None:
    paid = MANY * EVENTS_PER_ROW
    pace.took(paid)
    assert not pace.due(MANY, paid + 1)
    assert pace.due(MANY, 2 * paid)


def test_looks_are_an_interval_apart_and_never_spin(pace: Pace, clock: Clock) -> None:
    assert pace.wait_s() == 0.5
    clock.now += 3
    assert 0 < pace.wait_s() < 0.5
    pace.due(MANY, MANY)
    assert pace.wait_s() == 0.5
