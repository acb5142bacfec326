"""What is to go wrong, and when: drawn from a seed before the soak starts."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

# More than what issue 4 asks of an hour, since some find nobody to hurt.
PER_HOUR: Final = {
    "kill": 132,
    "join": 24,
    "zombie": 6,
    "broker": 7,
    "restart": 12,
    "settings": 12,
    "command": 60,
}
POISON: Final = "poison"
KINDS: Final = (*PER_HOUR, POISON)

_LENGTH_S: Final = {"join": (15.0, 35.0), "zombie": (14.0, 20.0)}
# Faults keep away from begin and end: workers must have come up, and must be able to settle.
_BEGIN_S: Final = 10.0
_END_S: Final = 25.0


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One fault: seconds after the start, kind, whom it hits (0 to 1), how long it lasts."""

    at_s: float
    kind: str
    pick: float
    length_s: float


def draw(seed: int, minutes: float, kinds: Collection[str], intensity: float = 1.0) -> list[Fault]:
    """The plan, in order of time; each kind at least once, and ``intensity`` times as often."""
    chance = random.Random(seed)
    end = max(minutes * 60 - _END_S, _BEGIN_S + 1)
    faults = [
        _fault(chance, kind, end)
        for kind, per_hour in PER_HOUR.items()
        if kind in kinds
        for _ in range(max(1, round(per_hour * intensity * minutes / 60)))
    ]
    return sorted(faults)


def _fault(chance: random.Random, kind: str, end: float) -> Fault:
    low, high = _LENGTH_S.get(kind, (0.0, 0.0))
    return Fault(chance.uniform(_BEGIN_S, end), kind, chance.random(), chance.uniform(low, high))
