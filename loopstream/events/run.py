"""Begin and end of a run."""

from __future__ import annotations

from typing import Annotated, Literal, final

from pydantic import Field

from loopstream.events.base import Envelope
from loopstream.events.context import MAX_REASON


@final
class RunStarted(Envelope):
    """A runner took up a run.

    With ``resumed`` the worker answers with the run's standing verdicts, so that a restarted
    runner is not blind.
    """

    type: Literal["run_started"]
    resumed: bool = False


@final
class RunEnded(Envelope):
    """A runner is done with a run; what arrives later still folds for the grace period."""

    type: Literal["run_ended"]
    status: Literal["completed", "failed", "aborted", "cancelled"] = "completed"
    reason: Annotated[str, Field(max_length=MAX_REASON)] | None = None


@final
class EventsLost(Envelope):
    """A runner had to drop events of this run (its buffer was full): counts may be too low."""

    type: Literal["events_lost"]
    count: Annotated[int, Field(ge=1, le=2**53 - 1)]
