"""The partitions that this worker holds in the present assignment, each with its fold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from loopstream.events import ControlSource
from loopstream.runtime.changelog import Changelog
from loopstream.runtime.fold import Fold
from loopstream.runtime.rows import PartitionRows


@dataclass(slots=True)
class Lane:
    """One events partition: its fold, its rows, and where it stands."""

    number: int
    fold: Fold
    rows: PartitionRows
    changelog: Changelog
    next_offset: int
    """Offset that the next record must have."""
    done: int
    """Everything before it is covered by a checkpoint."""
    sealed: int = -1
    """Last offset that the seal speaks of."""
    sequenced: tuple[int, ...] = ()
    """Ends of the control sources up to which they were appended to the partition."""
    appended: dict[ControlSource, int] = field(default_factory=dict)
    """Last source offset that was appended to the partition in this assignment."""


class Lanes:
    """Open lanes by partition; all of them go at a revoke."""

    def __init__(self) -> None:
        self._lanes: dict[int, Lane] = {}

    def __iter__(self) -> Iterator[Lane]:
        return iter(list(self._lanes.values()))

    def __len__(self) -> int:
        return len(self._lanes)

    def get(self, number: int) -> Lane | None:
        """The lane of a partition, if it is open."""
        return self._lanes.get(number)

    def open(self, lane: Lane) -> None:
        """Add a lane."""
        self._lanes[lane.number] = lane

    def clear(self) -> None:
        """Drop all live states."""
        self._lanes.clear()

    @property
    def numbers(self) -> frozenset[int]:
        """Partitions with an open lane."""
        return frozenset(self._lanes)

    @property
    def dirty(self) -> int:
        """Changed rows that no checkpoint has taken yet."""
        return sum(lane.fold.dirty for lane in self._lanes.values())

    def shrink(self, runs: int) -> None:
        """Keep so many live states in all, each partition its part; changed ones stay anyway."""
        live = sum(len(lane.fold.live) for lane in self)
        if live > runs:
            for lane in self:
                lane.fold.shrink(len(lane.fold.live) * runs // live)

    @property
    def behind(self) -> bool:
        """Whether a checkpoint would have anything to do."""
        return any(lane.next_offset > lane.done or lane.fold.dirty for lane in self)
