"""Verdicts: what loopstream decided about a run, published on the control topic."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from loopstream.events.base import CallId, Counter, Id, Millis, Model, Name, Scope

MAX_REASON_TEXT = 1024
MAX_SIGNATURE = 640
MAX_NOTE = 512


class Action(StrEnum):
    """What a verdict asks of the runner."""

    WARN = "warn"
    BLOCK = "block"
    RELEASE = "release"
    ABORT = "abort"
    ANSWER = "answer"


class Level(StrEnum):
    """How bad a finding is, in the reference's words."""

    NONE = "none"
    WARNING = "warning"
    CRITICAL = "critical"


class Target(Model):
    """Which calls a block or release covers.

    ``signature`` alone: that call. ``tool`` alone: every call of the tool, whatever its
    arguments. ``tool`` with ``except``: all of the tool's calls but those signatures.
    """

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    signature: Annotated[str, Field(max_length=MAX_SIGNATURE)] | None = None
    tool: Name | None = None
    exclude: tuple[str, ...] = Field(default=(), alias="except", max_length=1024)

    def covers(self, tool: str, signature: str) -> bool:
        """Whether a call of ``tool`` with ``signature`` falls under this target."""
        if self.signature is not None:
            return self.signature == signature
        return self.tool == tool and signature not in self.exclude


class Evidence(Model):
    """Where to look: the event that decided, and the records that were counted, newest last."""

    event: Id
    partition: int = Field(ge=0)
    offset: int = Field(ge=0)
    counted: tuple[int, ...] = Field(default=(), max_length=64)
    """Offsets of counted records (the newest few). Outside the comparison across framings."""
    by: Id | None = None
    """Of what an operator released or aborted: who."""
    note: Annotated[str, Field(max_length=MAX_NOTE)] | None = None
    """Likewise: why, in the operator's words."""
    command: Counter | None = None
    """Likewise: offset of the command on its topic."""


class Verdict(Model):
    """A published decision about a run.

    ``id`` is a digest of (prefix, scope key, trigger event id, detector, action, key): the same
    events give the same ids in any framing, live or replayed.
    """

    v: Literal[1] = 1
    type: Literal["verdict"] = "verdict"
    id: Annotated[str, Field(min_length=32, max_length=32)]
    seq: Counter
    """Number of the verdict within its run, from 1."""
    scope: Scope
    """Scope key: run id, or NUL and session id."""
    run: Id | None = None
    agent: Id | None = None
    session: Id | None = None
    runner: Id | None = None
    action: Action
    level: Level
    detector: Id
    count: Counter
    threshold: Counter
    tool: Name | None = None
    call_id: CallId | None = None
    """Of an ``answer``: the call that it answers."""
    applies_to: tuple[Target, ...] = ()
    paired_tool: Name | None = None
    key: Annotated[str, Field(max_length=4096)]
    """The reference's warning key."""
    reason: Annotated[str, Field(max_length=MAX_REASON_TEXT)]
    evidence: Evidence
    mode: Literal["shadow", "enforce"] = "enforce"
    """``shadow``: published to be looked at, and not to be acted on."""
    instead_of: Action | None = None
    """Of a warning: the block or abort that the detector's mode ``warn`` held back."""
    profile: Id
    settings: Annotated[str, Field(max_length=64)]
    """Digest of the settings in force."""
    event_time: Millis
    append_time: Millis
    traceparent: Annotated[str, Field(max_length=64)] | None = None
