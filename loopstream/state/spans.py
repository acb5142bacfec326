"""Stretches of neighbouring records that belong together, joined in constant time."""

from __future__ import annotations


class Spans:
    """Disjoint spans of consecutive sequence numbers; each end knows the other.

    The unknown-tool rule asks how many newest records name the same missing tool. Outcomes can
    settle out of order, so a stretch may close a hole between two others: joining looks only at
    the two neighbours.
    """

    __slots__ = ("_end", "_start")

    def __init__(self) -> None:
        self._end: dict[int, int] = {}
        self._start: dict[int, int] = {}

    def add(self, seq: int, *, joins_left: bool, joins_right: bool) -> None:
        """Add one number, joined with the span that ends just before or starts just after it."""
        start = self._start.pop(seq - 1) if joins_left else seq
        end = self._end.pop(seq + 1) if joins_right else seq
        self._end[start] = end
        self._start[end] = start

    def drop_first(self, seq: int) -> None:
        """Remove the smallest number of all, the start of its span."""
        end = self._end.pop(seq)
        if end == seq:
            del self._start[end]
        else:
            self._end[seq + 1] = end
            self._start[end] = seq + 1

    def length_at_end(self, seq: int) -> int:
        """How many numbers the span has that ends with ``seq``; 0 if none does."""
        start = self._start.get(seq)
        return 0 if start is None else seq - start + 1
