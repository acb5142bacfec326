"""What every event carries, and the bounds of its fields.

Field names are snake_case on the wire. Times are milliseconds since the epoch. Digests are 32 raw
bytes in msgpack and 64 lower-case hexadecimal digits in JSON.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

SCHEMA_VERSION: Final = 1
MAX_ID: Final = 128
MAX_NAME: Final = 512
MAX_CALL_ID: Final = 512

Id = Annotated[str, Field(max_length=MAX_ID)]
# A run id, or NUL and a session id.
Scope = Annotated[str, Field(max_length=MAX_ID + 1)]
# Kept as a digest above 128 bytes (events/text.py).
CallId = Annotated[str, Field(max_length=MAX_CALL_ID)]
Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
Digest = Annotated[
    bytes,
    Field(min_length=32, max_length=32),
    # In JSON; in msgpack it is 32 bytes (bin).
    WithJsonSchema({"type": "string", "pattern": "^[0-9a-f]{64}$"}),
]
Millis = Annotated[int, Field(ge=0, le=2**53 - 1)]
Counter = Annotated[int, Field(ge=0, le=2**63 - 1)]


class Model(BaseModel):
    """Base of everything on the wire: values, strictly typed; unknown fields are ignored."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        strict=True,
        val_json_bytes="hex",
        ser_json_bytes="hex",
        # A validation error is shown to operators; what a stranger sent is not.
        hide_input_in_errors=True,
        # Our own docstrings are the descriptions in the exported schemas.
        use_attribute_docstrings=True,
    )


class Envelope(Model):
    """The fields that all events share.

    A run is named by ``run``; an event without one counts for the "no run" scope of its
    ``session``. An event with neither is refused (``no_scope``).
    """

    v: Literal[1]
    """Schema major version. An unknown one is dead-lettered as ``unknown_version``."""
    id: Id | None = None
    """Event id, unique within its run. Without one the event is named by its position."""
    run: Id | None = None
    """Run id. White space around it does not count; blank means "no run"."""
    agent: Id | None = None
    """Agent that the run executes; picks the settings. Bound by the run's first event."""
    session: Id | None = None
    """Conversation that the run belongs to. Bound by the run's first event."""
    runner: Id | None = None
    """Process that executes the run. Bound by the run's first event."""
    epoch: Counter | None = None
    """Runner epoch: rises each time a runner takes the run up anew. Given together with seq."""
    seq: Counter | None = None
    """Number of the event within its run and epoch. At or below the last applied: a duplicate."""
    time: Millis
    """When it happened, by the runner's clock. Data, never the order of things."""
    batch: Id | None = None
    """Calls of one model message share a batch id."""
    trace: Id | None = None
    """Trace that the run belongs to."""
    parent_run: Id | None = None
    root_run: Id | None = None
    traceparent: Annotated[str, Field(max_length=64)] | None = None
    """W3C trace context, carried on to the verdict."""
