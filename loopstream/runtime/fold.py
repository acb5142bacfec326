"""What the shell asks of the pure fold of one partition (`loopstream.partition.Partition`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Sized
from typing import Any, Protocol

from loopstream.events import Control, DeadLetter, Pin, Verdict
from loopstream.partition import ControlSources
from loopstream.policy.deployment import Deployment

# Keys of the shell's and the fold's own rows start with a byte that no scope key (UTF-8) has.
RESERVED = b"\xff"


class Rows(Protocol):
    """Packed rows of one partition."""

    def get(self, key: bytes) -> bytes | None:
        """The row, or None."""
        ...


class Fold(Protocol):
    """The pure fold of one events partition; all of it is synchronous."""

    number: int
    verdicts: list[tuple[str, Verdict]]
    dead_letters: list[DeadLetter]
    counts: Counter[str]

    @property
    def live(self) -> Sized:
        """States that are kept unpacked."""
        ...

    @property
    def dirty(self) -> int:
        """Number of rows changed since `take_rows`."""
        ...

    @property
    def last_offset(self) -> int | None:
        """Offset of the last record applied."""
        ...

    @property
    def pinned(self) -> bool:
        """Whether the pin is in the partition's log (it was read back from there)."""
        ...

    def pin(self, now_ms: int) -> Pin:
        """Fix what is in force, if it is not yet; the pin to append to the partition's log."""
        ...

    def apply(self, record: Any) -> bool:
        """Fold one record; False: it refers to a source record that has not been read yet."""
        ...

    def take_rows(self) -> list[tuple[bytes, bytes]]:
        """The changed rows, packed; the marker row last."""
        ...

    def summaries(self) -> Sequence[tuple[str, Mapping[str, Any]]]:
        """Run summaries of the rows just taken; to be asked before anything else happens."""
        ...

    def shrink(self, size: int) -> None:
        """Forget live states beyond ``size`` that the stored rows say everything about."""
        ...

    def expired(self, row: bytes) -> bool:
        """Whether a stored row is dead by the partition's newest append time."""
        ...

    def forget(self, scope: str) -> bool:
        """Before a dead row is erased: drop its live state; False if it has new life in it."""
        ...

    def pending_controls(self) -> Sequence[Control]:
        """Source records that this partition's log does not have yet."""
        ...


class FoldFactory(Protocol):
    """Makes the fold of one partition from its rows and its marker row (None: fresh)."""

    def __call__(
        self,
        deployment: Deployment,
        number: int,
        partitions: int,
        rows: Rows,
        sources: ControlSources,
        state: bytes | None,
    ) -> Fold:
        """The fold, ready for the record after the marker's."""
        ...


RowPosition = Callable[[bytes], tuple[int, int]]
"""Reads (partition, last offset) from the head of a packed row."""
