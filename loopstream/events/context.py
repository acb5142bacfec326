"""Compaction of a run's context."""

from __future__ import annotations

from typing import Annotated, Literal, final

from pydantic import Field

from loopstream.events.base import Counter, Envelope

MAX_REASON = 512


@final
class Compaction(Envelope):
    """The run's context was compacted.

    Only a compaction that succeeded and after which the prompt was retried (overflow, time-out
    recovery, a swallowed final answer) arms the post-compaction guard; one that a user asked for
    does not.
    """

    type: Literal["compaction"]
    succeeded: bool = True
    retried: bool = False
    reason: Annotated[str, Field(max_length=MAX_REASON)] | None = None
    tokens_before: Counter | None = None
    tokens_after: Counter | None = None
