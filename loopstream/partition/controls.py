"""Settings and operator commands as they come back in a partition's own order.

The sources are compacted topics; reading them beside the events would make replay depend on
timing. So their records are copied into each partition by its owner, and count where they come
back, once the source has confirmed them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Final

from loopstream.events import Control, ControlSource, Pin, RejectCode
from loopstream.events.base import MAX_ID
from loopstream.partition.admission import RefusedEventError
from loopstream.partition.marker import Marker, policy_text
from loopstream.partition.settings import SettingsInForce
from loopstream.partition.sources import ControlSources, SourceRecord
from loopstream.policy.deployment import Deployment
from loopstream.policy.orders import Order, order_of
from loopstream.wire.routing import partition_of

_MAX_BODY: Final = 65_536


class Controls:
    """What is in force in one partition, and how far the sources have been taken in.

    Args:
        marker: the partition's marker; kept up to date in place.
        settings: the settings in force; changed in place.
    """

    def __init__(
        self,
        deployment: Deployment,
        partitions: int,
        sources: ControlSources,
        marker: Marker,
        settings: SettingsInForce,
    ) -> None:
        self._deployment = deployment
        self._partitions = partitions
        self._sources = sources
        self._marker = marker
        self._settings = settings

    # -- the pin ---------------------------------------------------------------------------

    def pin_present(self) -> None:
        """A fresh partition: what the sources say now is in force from its first event on."""
        marker = self._marker
        config_end = self._sources.next_offset("config")
        for record in self._records("config", 0, config_end):
            text = _text(record.value)
            if _fits(record.key) and (record.value is None or text is not None):
                self._settings.put(record.key, text)
        marker.config_offset = marker.pin_config_offset = config_end - 1
        commands_end = self._sources.next_offset("commands")
        marker.commands_offset = marker.pin_commands_offset = commands_end - 1
        marker.pin_settings = dict(self._settings.blocks)

    def pin_event(self, now_ms: int) -> Pin:
        """The pin as it is appended to the partition."""
        marker = self._marker
        return Pin(
            v=1,
            type="pin",
            time=now_ms,
            config_offset=marker.pin_config_offset,
            commands_offset=marker.pin_commands_offset,
            settings=marker.pin_settings,
            policy=policy_text(self._deployment),
        )

    def see_pin(self, pin: Pin) -> bool:
        """Our own pin came back, so it is in the log; a stranger's has no effect."""
        marker = self._marker
        ours = (
            pin.config_offset == marker.pin_config_offset
            and pin.commands_offset == marker.pin_commands_offset
            and pin.settings == marker.pin_settings
        )
        marker.pinned = marker.pinned or ours
        return ours

    # -- control records -------------------------------------------------------------------

    def readable(self, control: Control) -> bool:
        """Whether the source has been read far enough to check the record."""
        return control.offset <= self._applied(
            control.source
        ) or control.offset < self._sources.next_offset(control.source)

    def take(self, control: Control) -> Order | None:
        """Check a control record against its source and take it in.

        Returns:
            An order for the partition to carry out; None for settings, and for a record that
            was taken in before (a double does no harm).

        Raises:
            RefusedEventError: ``forged_control``, ``settings_refused``, ``invalid`` (no command).
        """
        if control.offset <= self._applied(control.source):
            return None
        record = self._sources.lookup(control.source, control.offset)
        if record is None or not _same(control, record):
            raise RefusedEventError(RejectCode.FORGED_CONTROL, "the source says otherwise")
        if control.source == "commands":
            self._marker.commands_offset = control.offset
            if (order := order_of(control.key, control.body, control.offset)) is None:
                raise RefusedEventError(RejectCode.INVALID, "command")
            return order
        self._marker.config_offset = control.offset
        if (why := self._settings.put(control.key, control.body)) is not None:
            raise RefusedEventError(RejectCode.SETTINGS_REFUSED, why)
        return None

    def pending(self) -> Iterator[Control]:
        """Source records that concern this partition and that it has not taken in yet."""
        for source in _SOURCES:
            start, end = self._applied(source) + 1, self._sources.next_offset(source)
            for record in self._records(source, start, end):
                if self._concerns(source, record) and (control := _control(source, record)):
                    yield control

    def _concerns(self, source: ControlSource, record: SourceRecord) -> bool:
        if source == "config" or _for_an_agent(record):
            return True
        return partition_of(record.key, self._partitions) == self._marker.partition

    def _applied(self, source: ControlSource) -> int:
        marker = self._marker
        return marker.config_offset if source == "config" else marker.commands_offset

    def _records(self, source: ControlSource, start: int, end: int) -> Iterator[SourceRecord]:
        for offset in range(start, end):
            if (record := self._sources.lookup(source, offset)) is not None:
                yield record


_SOURCES: Final[tuple[ControlSource, ...]] = ("config", "commands")


def _for_an_agent(record: SourceRecord) -> bool:
    """Whether a command is for all runs of an agent: those may be in any partition."""
    if b'"agent"' not in (record.value or b""):
        return False
    order = order_of(record.key, _text(record.value), record.offset)
    return order is not None and order.agent is not None


def _control(source: ControlSource, record: SourceRecord) -> Control | None:
    """The copy of a source record; None if it can't be copied (it is no text, or too long)."""
    body = _text(record.value)
    if not _fits(record.key) or (record.value is not None and body is None):
        return None
    return Control(
        v=1,
        type="control",
        time=0,
        source=source,
        offset=record.offset,
        sha256=hashlib.sha256(record.value or b"").digest(),
        key=record.key,
        body=body,
    )


def _same(control: Control, record: SourceRecord) -> bool:
    value = record.value or b""
    return (
        control.key == record.key
        and control.sha256 == hashlib.sha256(value).digest()
        and (control.body is None) == (record.value is None)
        and (control.body or "").encode() == value
    )


def _text(value: bytes | None) -> str | None:
    try:
        text = None if value is None else value.decode()
    except UnicodeDecodeError:
        return None
    return text if text is None or len(text) <= _MAX_BODY else None


def _fits(key: str) -> bool:
    return 0 < len(key) <= MAX_ID
