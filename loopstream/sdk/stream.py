"""One run's events: its envelope, their numbers, their bytes.

Events are packed when they happen: what an agent does to its arguments afterwards does not show,
and the buffer knows its size. pydantic stays out of this path; the tests hold the bytes against it.
"""

from __future__ import annotations

from typing import Any, Final

import msgpack

from loopstream.events import SCHEMA_VERSION
from loopstream.wire.routing import partition_of

Fields = dict[str, Any]

_HASH_SPACE: Final = 1 << 31
# How maps of so many members begin: more than an event can have.
_HEADS: Final = tuple(bytes(msgpack.Packer().pack_map_header(size)) for size in range(64))


class Stream:
    """The sequence of one run's events from one runner. Not safe to share between threads.

    Args:
        scope: scope key of the run.
        epoch: rises each time a runner takes the run up anew.
        envelope: the fields that all its events share; those that are None are left out.
    """

    def __init__(self, scope: str, epoch: int, envelope: Fields) -> None:
        self.scope = scope
        self.epoch = epoch
        self.seq = 0
        shared = {
            "v": SCHEMA_VERSION,
            **{name: value for name, value in envelope.items() if value is not None},
            "epoch": epoch,
        }
        # Packed once a run: the members of a map, without its head.
        self._envelope = bytes(msgpack.packb(shared))[len(_HEADS[len(shared)]) :]
        self._shared = len(shared)
        # Kafka's murmur2 is taken once a run; modulo the number of partitions it is the partition.
        self._hash = partition_of(scope, _HASH_SPACE)

    def partition(self, partitions: int) -> int:
        """The partition of its events, and of the verdicts on it."""
        return self._hash % partitions

    def next_id(self) -> str:
        """Take the next number; the id of the event that will have it."""
        self.seq += 1
        return self.id_of(self.seq)

    def id_of(self, seq: int) -> str:
        """The id of the event with a number: unique within the run, whoever executes it."""
        return f"{self.epoch}-{seq}"

    def pack(self, kind: str, time: int, fields: Fields, seq: int | None = None) -> bytes:
        """An event's bytes; ``seq`` is that of the last `next_id` unless given."""
        number = self.seq if seq is None else seq
        own = {"type": kind, "id": f"{self.epoch}-{number}", "seq": number, "time": time, **fields}
        packed: bytes = msgpack.packb(own)
        head = _HEADS[self._shared + len(own)]
        return b"".join((head, self._envelope, packed[len(_HEADS[len(own)]) :]))
