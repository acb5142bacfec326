"""Run summaries: what is known of each run, for dashboards and the command line."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from loopstream.events.base import Counter, Id, Millis, Model, Scope

RunStatus = Literal["active", "warned", "blocked", "aborted", "ended"]


class StandingBlock(Model):
    """A block in force."""

    detector: Id
    count: Counter
    signature: Annotated[str, Field(max_length=640)] | None = None
    tool: Annotated[str, Field(max_length=512)] | None = None


class RunSummary(Model):
    """One run as of its last event. On ``<prefix>.runs``, compacted, keyed by scope key."""

    v: Literal[1] = 1
    type: Literal["run_summary"] = "run_summary"
    scope: Scope
    run: Id | None = None
    agent: Id | None = None
    session: Id | None = None
    runner: Id | None = None
    status: RunStatus
    mode: Literal["shadow"] | None = None
    """``shadow``: the whole deployment only looks on; the standing is what it would be."""
    profile: Id | None = None
    """The deployment's."""
    action: Id | None = None
    """Of the newest warning, block or abort, or of what an operator ordered since."""
    detector: Id | None = None
    count: Counter = 0
    reason: Annotated[str, Field(max_length=1024)] | None = None
    verdict_time: Millis | None = None
    calls: Counter = 0
    outcomes: Counter = 0
    refused: Counter = 0
    warnings: Counter = 0
    """Announced, and acted on."""
    blocks: Counter = 0
    """Calls that were judged critical and refused; not the number of block verdicts."""
    shadow: Counter = 0
    """Warnings, blocks and aborts in mode shadow: published, and acted on by nobody."""
    gaps: Counter = 0
    lost: Counter = 0
    standing: tuple[StandingBlock, ...] = Field(default=(), max_length=1024)
    verdicts: Counter = 0
    last_event: Millis
    """Event time of the last event."""
    partition: int = Field(ge=0)
    offset: int
    """Position of the last event applied."""
