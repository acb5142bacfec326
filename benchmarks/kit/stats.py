"""The figures that a benchmark may quote: spreads, quantiles, and ratios within a round."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """Least, middle and greatest of a case's rounds."""

    least: float
    median: float
    greatest: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """Of at least one value.

        Raises:
            ValueError: there is none.
        """
        ranked = sorted(values)
        if not ranked:
            raise ValueError("no round has this figure")
        return cls(ranked[0], statistics.median(ranked), ranked[-1])


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least ``share`` of all are at or below (nearest rank)."""
    ranked = sorted(values)
    if not ranked:
        raise ValueError("no values")
    at = -(-share * len(ranked) // 1)
    return ranked[max(0, min(len(ranked), int(at)) - 1)]


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """What is told of a distribution; nothing of an empty one."""
    if not values:
        return {"count": 0.0}
    return {
        "count": float(len(values)),
        "p50": quantile(values, 0.5),
        "p90": quantile(values, 0.9),
        "p99": quantile(values, 0.99),
        "max": max(values),
    }


def ratio(one: Sequence[float], other: Sequence[float]) -> float:
    """Median of the ratios round by round: what drifts in the machine cancels out.

    Raises:
        ValueError: the rounds don't pair up, or there are none.
    """
    pairs = list(zip(one, other, strict=True))
    if not pairs:
        raise ValueError("no rounds")
    return statistics.median(a / b for a, b in pairs)
