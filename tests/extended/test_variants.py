"""Loops that must be seen and look-alikes that must not, beside the shared scenarios."""

from __future__ import annotations

import pytest

from benchmarks.detecting.healthy import look_alikes
from loopstream.scenarios import LEVELS, Player, rising
from tests.extended.variants import HEALTHY, LOOPS, Event


def highest(events: list[Event]) -> str:
    player = Player("extended")
    for event in events:
        player.play(event)
    heard = rising(player.verdicts)
    return heard[-1].level if heard else "none"


@pytest.mark.parametrize("name", LOOPS)
def test_loops_are_seen(name: str) -> None:
    want, events = LOOPS[name]
    assert LEVELS.index(highest(events)) >= LEVELS.index(want)


@pytest.mark.parametrize("name", HEALTHY)
def test_work_that_gets_somewhere_is_left_alone(name: str) -> None:
    assert highest(HEALTHY[name]) == "none"


def test_generated_look_alikes_are_left_alone() -> None:
    for healthy in look_alikes(each=3, seed=7):
        assert LEVELS.index(highest(healthy.events)) <= LEVELS.index(healthy.limit), healthy.name
