"""One partition's share of the outbox: what waits for it, and what was lost."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from loopstream.sdk.frames import Frame, Tally
from loopstream.sdk.stream import Stream
from loopstream.wire.limits import MAX_EVENTS_PER_FRAME

# What an event costs beside its bytes, roughly: the entry, the bytes' head.
_EVENT_OVERHEAD: Final = 150
# Runs whose losses are remembered while they can't be told.
_MAX_LOSERS: Final = 10_000


class Entry(NamedTuple):
    """One packed event that waits; ``cost`` is what it takes in memory, in bytes."""

    stream: Stream
    seq: int
    time: int
    data: bytes
    cost: int


def cost_of(data: bytes) -> int:
    """Bytes that a packed event takes in memory while it waits."""
    return len(data) + _EVENT_OVERHEAD


@dataclass(slots=True)
class Lane:
    """What waits for one partition.

    Attributes:
        open: the reader of verdicts has fixed its position in this partition.
        runs: live runs whose events go here.
        sending: the frame that Kafka has not confirmed yet.
        since: when it was handed to Kafka.
        again: a frame that failed, to be sent before all else.
    """

    entries: deque[Entry] = field(default_factory=deque)
    cost: int = 0
    first_at: float = 0.0
    urgent: bool = False
    lost: dict[Stream, Tally] = field(default_factory=dict)
    open: bool = False
    runs: int = 0
    used_at: float = 0.0
    sending: Frame | None = None
    since: float = 0.0
    again: Frame | None = None

    @property
    def waits(self) -> bool:
        """Whether there is anything that Kafka has not confirmed."""
        return bool(self.entries or self.lost or self.sending or self.again)


def mark(lane: Lane, stream: Stream, tally: Tally) -> None:
    """Note that a run lost events which will not be sent."""
    tally_up(lane.lost, stream, Tally(tally.lost, tally.seq, tally.time))
    if len(lane.lost) > _MAX_LOSERS:
        del lane.lost[next(iter(lane.lost))]


def tally_up(tallies: dict[Stream, Tally], stream: Stream, tally: Tally) -> None:
    """Add events of a run to what is known of it."""
    known = tallies.get(stream)
    if known is None:
        tallies[stream] = tally
    else:
        known.add(tally)


def markers(lane: Lane) -> tuple[list[bytes], dict[Stream, Tally]]:
    """Events that tell of losses; all that is left in the lane happened after them."""
    packed: list[bytes] = []
    tallies: dict[Stream, Tally] = {}
    for stream in list(lane.lost)[: MAX_EVENTS_PER_FRAME // 2]:
        gap = lane.lost.pop(stream)
        packed.append(stream.pack("events_lost", gap.time, {"count": gap.lost}, gap.seq))
        tallies[stream] = Tally(gap.lost, gap.seq, gap.time, known=gap.lost)
    return packed, tallies
