"""Frames out of events that are packed already: the same bytes as ``wire.codec.pack_frame``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgpack

from loopstream.events import SCHEMA_VERSION
from loopstream.sdk.stream import Stream

# Room that a frame's head takes.
HEAD_BYTES: Final = 32


@dataclass(slots=True)
class Tally:
    """What a frame, or a gap, holds of one run.

    Attributes:
        lost: how many of the agent's events are gone if this is.
        seq: number of the last of them.
        time: when that happened, in ms.
        packed: how many events they are on the wire; a marker is one for many.
        known: how many of them are known to be lost.
    """

    lost: int
    seq: int
    time: int
    packed: int = 1
    known: int = 0

    def add_event(self, seq: int, time: int) -> None:
        """Take one event in."""
        self.lost += 1
        self.packed += 1
        self.seq = max(self.seq, seq)
        self.time = max(self.time, time)

    def add(self, other: Tally) -> None:
        """Take another's events in."""
        self.lost += other.lost
        self.packed += other.packed
        self.known += other.known
        self.seq = max(self.seq, other.seq)
        self.time = max(self.time, other.time)


@dataclass(frozen=True, slots=True)
class Frame:
    """One record for Kafka.

    Attributes:
        partition: where it goes.
        key: the run's scope key, if all events are of one run.
        value: the packed frame.
        tallies: what it holds of each run.
    """

    partition: int
    key: bytes | None
    value: bytes
    tallies: dict[Stream, Tally]

    @property
    def events(self) -> int:
        """How many events it holds."""
        return sum(tally.packed for tally in self.tallies.values())


def join_frame(events: Sequence[bytes]) -> bytes:
    """One frame of packed events."""
    packer = msgpack.Packer(autoreset=False)
    packer.pack_map_header(2)
    packer.pack("v")
    packer.pack(SCHEMA_VERSION)
    packer.pack("events")
    packer.pack_array_header(len(events))
    return b"".join((packer.bytes(), *events))
