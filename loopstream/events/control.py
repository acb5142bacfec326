"""Settings and operator commands, sequenced into the events by the owner of a partition.

A control record is a copy of a record of ``<prefix>.config`` or ``<prefix>.commands``. It counts
only if the source says the same (offset and SHA-256), so a forged one has no effect.
"""

from __future__ import annotations

from typing import Annotated, Literal, final

from pydantic import Field

from loopstream.events.base import Counter, Digest, Id, Millis, Model

ControlSource = Literal["config", "commands"]


@final
class Control(Model):
    """One settings block or command, from where it came, byte for byte."""

    v: Literal[1]
    type: Literal["control"]
    id: Id | None = None
    time: Millis
    source: ControlSource
    offset: Counter
    """Offset in the source topic, which has one partition."""
    sha256: Digest
    """SHA-256 of the source record's value (of no bytes for a tombstone)."""
    key: Id
    """Agent id or ``*`` for settings; run or agent id for commands."""
    body: Annotated[str, Field(max_length=65_536)] | None = None
    """The source record's value; absent: a tombstone, the block is taken away."""


@final
class Pin(Model):
    """What was in force before a partition's first event: replay starts from it."""

    v: Literal[1]
    type: Literal["pin"]
    id: Id | None = None
    time: Millis
    config_offset: int = Field(ge=-1)
    """Last config offset that is part of the pin; -1: the config topic was empty."""
    commands_offset: int = Field(ge=-1)
    """Last command before the pin: commands up to it are not for this partition's events."""
    settings: dict[Id, str]
    """Settings blocks in force by key (agent id or ``*``), as JSON text."""
    policy: str = Field(max_length=65_536)
    """The deployment's policy (profile, announce, mode, limits) as JSON text."""
