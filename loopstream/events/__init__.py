"""The vocabulary: everything that travels on the topics, as one discriminated union."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, TypeAdapter

from loopstream.events.base import SCHEMA_VERSION, Digest, Envelope, Model
from loopstream.events.context import Compaction
from loopstream.events.control import Control, ControlSource, Pin
from loopstream.events.dead_letter import DeadLetter, RejectCode
from loopstream.events.run import EventsLost, RunEnded, RunStarted
from loopstream.events.tool import (
    CallDigests,
    CallFingerprint,
    Disposition,
    OutcomeDigests,
    OutcomeFingerprint,
    ToolCall,
    ToolOutcome,
)
from loopstream.events.verdict import Action, Evidence, Level, Target, Verdict

RunEvent = ToolCall | ToolOutcome | Compaction | RunStarted | RunEnded | EventsLost
Event = RunEvent | Control | Pin

EVENT: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="type")])
EVENTS: TypeAdapter[list[Event]] = TypeAdapter(list[Annotated[Event, Field(discriminator="type")]])

__all__ = [
    "EVENT",
    "EVENTS",
    "SCHEMA_VERSION",
    "Action",
    "CallDigests",
    "CallFingerprint",
    "Compaction",
    "Control",
    "ControlSource",
    "DeadLetter",
    "Digest",
    "Disposition",
    "Envelope",
    "Event",
    "EventsLost",
    "Evidence",
    "Level",
    "Model",
    "OutcomeDigests",
    "OutcomeFingerprint",
    "Pin",
    "RejectCode",
    "RunEnded",
    "RunEvent",
    "RunStarted",
    "Target",
    "ToolCall",
    "ToolOutcome",
    "Verdict",
]
