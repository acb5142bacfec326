"""The topics that operators write: detector settings and commands, as the fold sees them."""

from __future__ import annotations

from typing import Protocol

from loopstream.events import ControlSource


class SourceRecord(Protocol):
    """One record of ``<prefix>.config`` or ``<prefix>.commands``."""

    @property
    def offset(self) -> int:
        """Offset in the source topic, which has one partition."""
        ...

    @property
    def key(self) -> str:
        """Agent id or ``*`` for settings; run or agent id for commands."""
        ...

    @property
    def value(self) -> bytes | None:
        """JSON text; None: a tombstone."""
        ...


class ControlSources(Protocol):
    """The sources, as far as they have been read."""

    def lookup(self, source: ControlSource, offset: int) -> SourceRecord | None:
        """The record at an offset; None if there is none."""
        ...

    def next_offset(self, source: ControlSource) -> int:
        """Everything before this offset has been read."""
        ...


class NoSources:
    """No operator's topics at all: for replay from files, and for tests."""

    def lookup(self, source: ControlSource, offset: int) -> SourceRecord | None:
        """There is no record."""
        return None

    def next_offset(self, source: ControlSource) -> int:
        """Nothing was read, and nothing will be."""
        return 0
