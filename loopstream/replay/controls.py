"""The operators' topics as replay sees them: read to the end, or taken on trust."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from loopstream.events import Control, ControlSource, Pin

# Everything that can ever be read has been read.
_CERTAIN: Final = 1 << 62
_MARK: Final = b"control"


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """One record of ``<prefix>.config`` or ``<prefix>.commands``."""

    offset: int
    key: str
    value: bytes | None
    timestamp: int = 0


class ReplaySources:
    """What the operators' topics held (`loopstream.partition.ControlSources`).

    A control record whose source record is gone is taken on trust if it is consistent in itself
    and either there are no topics to ask (files), or compaction explains the gap: the source has
    a newer record of the same key. ``trusted`` counts those, so that it can be said.

    Args:
        held: records by source and offset; None: there are no topics to ask.
    """

    def __init__(
        self, held: Mapping[ControlSource, Mapping[int, SourceRecord]] | None = None
    ) -> None:
        self._held = held
        self._noted: dict[tuple[ControlSource, int], SourceRecord] = {}
        self._newest: dict[tuple[ControlSource, str], int] = {}
        self.trusted = 0
        for source, records in (held or {}).items():
            for record in records.values():
                self._newest[source, record.key] = record.offset

    @property
    def verified(self) -> bool:
        """Whether there are topics to ask."""
        return self._held is not None

    def next_offset(self, source: ControlSource) -> int:
        """What has not been read is not there."""
        return _CERTAIN

    def lookup(self, source: ControlSource, offset: int) -> SourceRecord | None:
        """The record at an offset, or what a trusted control record says of it."""
        if self._held is not None and (record := self._held[source].get(offset)) is not None:
            return record
        return self._noted.get((source, offset))

    def note(self, controls: Iterable[Control]) -> None:
        """Take note of control records before they are applied."""
        for control in controls:
            place = (control.source, control.offset)
            if place in self._noted or not self._trustworthy(control):
                continue
            value = None if control.body is None else control.body.encode()
            self._noted[place] = SourceRecord(control.offset, control.key, value)
            self.trusted += 1

    def config_before(self, offset: int | None) -> list[SourceRecord]:
        """Settings records before an offset (None: all), in order."""
        records = (self._held or {}).get("config", {})
        return [records[at] for at in sorted(records) if offset is None or at < offset]

    def end(self, source: ControlSource) -> int:
        """One past the newest record held."""
        return max((self._held or {}).get(source, {}), default=-1) + 1

    def contradicts(self, pin: Pin) -> bool:
        """Whether a pin says something else than the config topic: a stranger wrote it."""
        if self._held is None:
            return False
        if pin.config_offset >= self.end("config"):
            return True
        newest: dict[str, SourceRecord] = {}
        for record in self.config_before(pin.config_offset + 1):
            newest[record.key] = record
        told = {key: text.encode() for key, text in pin.settings.items()}
        # A key that the topic no longer has was compacted away: nobody can tell.
        return any(
            record.value != told.get(key) and record.value is not None
            for key, record in newest.items()
        )

    def _trustworthy(self, control: Control) -> bool:
        value = (control.body or "").encode()
        if control.sha256 != hashlib.sha256(value).digest():
            return False
        if self._held is None:
            return True
        gone = control.offset not in self._held[control.source]
        return gone and self._newest.get((control.source, control.key), -1) > control.offset


def may_hold_controls(value: bytes) -> bool:
    """Cheap test: False means that a record has no control event in it."""
    return _MARK in value
