"""The newest verdicts, in the order in which they came, within bounds of number and bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from loopstream.events import Verdict
from loopstream.web.cursor import encode

MAX_VERDICTS: Final = 10_000
MAX_BYTES: Final = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Said:
    """A verdict and where it stands on its topic.

    Attributes:
        number: its place among all that came, from 1.
        size: of the record, in bytes.
    """

    verdict: Verdict
    partition: int
    offset: int
    size: int
    number: int = 0


class Ring:
    """What a browser can be told again without asking Kafka.

    Args:
        partitions: of the verdict topic.
        nexts: offset of each partition that reading begins at; nothing before it is known.
    """

    def __init__(
        self,
        nexts: Sequence[int],
        max_verdicts: int = MAX_VERDICTS,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self.nexts = list(nexts)
        self.number = 0
        self._floors = list(nexts)
        self._max_verdicts = max_verdicts
        self._max_bytes = max_bytes
        self._bytes = 0
        self._held: deque[Said] = deque()
        self._by_id: dict[str, Said] = {}

    def __len__(self) -> int:
        return len(self._held)

    @property
    def cursor(self) -> str:
        """All that has come so far, as a word."""
        return encode(self.nexts)

    def pass_over(self, partition: int, offset: int) -> None:
        """A record was read."""
        self.nexts[partition] = max(self.nexts[partition], offset + 1)

    def add(self, said: Said) -> Said | None:
        """Take a verdict up; None for one that is here already (published again after a crash)."""
        self.pass_over(said.partition, said.offset)
        if said.verdict.id in self._by_id:
            return None
        self.number += 1
        held = Said(said.verdict, said.partition, said.offset, said.size, self.number)
        self._held.append(held)
        self._by_id[held.verdict.id] = held
        self._bytes += held.size
        while len(self._held) > self._max_verdicts or self._bytes > self._max_bytes:
            self._drop_oldest()
        return held

    def get(self, verdict_id: str) -> Said | None:
        """A verdict by its id, if it is still held."""
        return self._by_id.get(verdict_id)

    def newest(self) -> Iterator[Said]:
        """All that is held, the newest first."""
        return reversed(self._held)

    def since(self, number: int) -> list[Said] | None:
        """What came after a place, oldest first; None if some of it is no longer held."""
        missed = self.number - number
        if missed > len(self._held):
            return None
        newest = self.newest()
        return [next(newest) for _ in range(missed)][::-1]

    def after(self, cursor: Sequence[int]) -> list[Said] | None:
        """What a browser with this cursor has not seen; None if some of it is no longer held."""
        if len(cursor) != len(self.nexts):
            return None
        for seen, floor, upcoming in zip(cursor, self._floors, self.nexts, strict=True):
            if seen < floor or seen > upcoming:
                return None
        return [said for said in self._held if said.offset >= cursor[said.partition]]

    def _drop_oldest(self) -> None:
        oldest = self._held.popleft()
        del self._by_id[oldest.verdict.id]
        self._bytes -= oldest.size
        floor = self._floors[oldest.partition]
        self._floors[oldest.partition] = max(floor, oldest.offset + 1)
