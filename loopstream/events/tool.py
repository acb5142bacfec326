"""Tool calls and their outcomes.

Both carry either fingerprints (``fp``, the normal case: arguments and results never leave the
runner) or raw values as JSON text (``args``, ``result``, ``error``), which the worker
fingerprints itself. A missing value and a JSON ``null`` are different things.
"""

from __future__ import annotations

from typing import Annotated, Literal, final

from pydantic import Field, WithJsonSchema

from loopstream.events.base import CallId, Counter, Digest, Envelope, Id, Model, Name

Disposition = Literal["executed", "refused", "gated"]
RecordKind = Literal["terminal-exec-failure", "tool-loop-veto"]

Effect = Literal["read", "change", "send", "wait"]
FailureKind = Literal[
    "denied",
    "rate_limit",
    "auth",
    "permission",
    "connection",
    "timeout",
    "server",
    "not_found",
    "invalid",
    "unknown_tool",
    "exit",
    "other",
]
ShortDigest = Annotated[
    bytes,
    Field(min_length=8, max_length=8),
    WithJsonSchema({"type": "string", "pattern": "^[0-9a-f]{16}$"}),
]
# A set of digests of 4 bytes each.
Sketch = Annotated[
    bytes,
    Field(max_length=64),
    WithJsonSchema({"type": "string", "pattern": "^([0-9a-f]{8}){0,16}$"}),
]

# Raw values are bounded by the codec (wire/limits.py), which knows their size in bytes.
JsonText = str

MAX_PREVIEW = 512
# The beginning of a redacted value's JSON text, for people (``capture = preview``).
Preview = Annotated[str, Field(max_length=MAX_PREVIEW)]


class CallDigests(Model):
    """What the detectors of one profile need to know of a call."""

    args: Digest
    """Digest of the canonical arguments."""
    poll: bool = False
    """A status poll: ``command_status``, or ``process`` with action ``poll`` or ``log``."""


class OutcomeDigests(CallDigests):
    """What the detectors of one profile need to know of an outcome."""

    result: Digest | None = None
    """Digest of the outcome; absent when nothing is to be recorded."""
    failed: bool = False
    """The outcome is an error: written ``error:`` before the digest."""
    unknown_tool: Name | None = None
    """Name of a tool that does not exist, read from the error, in lower case."""
    kind: RecordKind | None = None
    """Profile ``reference-2026-9`` only."""
    no_progress: bool = False
    """Profile ``reference-2026-9`` only."""
    failure: Digest | None = None
    """Failure identity of a failed command. Profile ``reference-2026-9`` only."""


class ExtendedCall(Model):
    """What profile ``extended`` needs to know of a call. Digests and short hints only."""

    args: Digest
    """Digest of the canonical arguments; JSON text counts as the object that it spells."""
    masked: Digest | None = None
    """The same with volatile parts masked (the call's signature); absent: nothing was masked."""
    leaves: Sketch = b""
    """Digests of the flattened leaves, 4 bytes each, sorted."""
    words: Sketch = b""
    """Digests of the words in short texts, 4 bytes each, sorted."""
    poll: bool = False
    effect: Effect | None = None
    """What the call does, as far as name and arguments say."""
    resource: ShortDigest | None = None
    """The thing that is read or changed, or who is written to."""
    subject: ShortDigest | None = None
    """What tells the call from its like, where that is no single resource."""
    server: ShortDigest | None = None
    """MCP server, or host of a URL."""
    tokens: Counter | None = None
    """Tokens spent on the model message that made the call."""
    cost: Counter | None = None
    """What that message cost, in millionths of the deployment's currency."""


class ExtendedOutcome(Model):
    """What profile ``extended`` needs to know of an outcome."""

    args: Digest
    masked: Digest | None = None
    result: ShortDigest | None = None
    """Digest of the normalised outcome; absent: nothing came, the call stays pending."""
    failure: FailureKind | None = None
    failure_class: ShortDigest | None = None
    """Digest of kind, code and (where these don't say all) the masked text."""
    server: ShortDigest | None = None
    """Server that the error names."""
    unknown_tool: Name | None = None
    refused: Literal["veto", "denied"] | None = None
    """Proposed, not executed: as part of a loop, or by a policy or person."""
    ack: bool = False
    """Nothing but an acknowledgement, or empty."""
    unchanged: bool = False
    """The tool says that it changed nothing."""
    size: Annotated[int, Field(ge=0, le=64)] = 0
    """Size class: bits of the length in bytes."""

    @property
    def failed(self) -> bool:
        """Whether the outcome is a failure of any sort."""
        return self.failure is not None


class CallFingerprint(Model):
    """Digests of a call, one block a profile."""

    v: Literal[1] = 1
    key_id: Id | None = None
    """Name of the tenant key of the HMAC; absent: plain SHA-256."""
    documented: CallDigests | None = None
    reference: CallDigests | None = None
    extended: ExtendedCall | None = None


class OutcomeFingerprint(Model):
    """Digests of an outcome, one block a profile."""

    v: Literal[1] = 1
    key_id: Id | None = None
    documented: OutcomeDigests | None = None
    reference: OutcomeDigests | None = None
    extended: ExtendedOutcome | None = None


@final
class ToolCall(Envelope):
    """An agent is about to call a tool, or was refused to."""

    type: Literal["tool_call"]
    tool: Name
    """Tool name (``gen_ai.tool.name``), taken literally."""
    call_id: CallId | None = None
    """``gen_ai.tool.call.id``: ties the outcome to its call."""
    disposition: Disposition = "executed"
    """``executed``: the runner goes on. ``refused``: the runner blocked it by itself. ``gated``:
    the runner waits for an ``answer`` verdict."""
    fp: CallFingerprint | None = None
    args: JsonText | None = None
    """Raw arguments as JSON text; absent: the call has no arguments."""
    preview: Preview | None = None
    """First characters of the arguments, redacted; for people to read, never judged."""
    oversize: bool = False
    """The arguments were over the bound; the digest is that of their bytes."""


@final
class ToolOutcome(Envelope):
    """What came of a tool call."""

    type: Literal["tool_outcome"]
    tool: Name
    call_id: CallId | None = None
    executed: bool = True
    """False: the tool did not run (a veto). True on a gated call that was run all the same."""
    fp: OutcomeFingerprint | None = None
    args: JsonText | None = None
    """Raw arguments as JSON text, as in the call."""
    result: JsonText | None = None
    """Raw result as JSON text; absent: there is none, the call stays pending."""
    error: JsonText | None = None
    """Raw error as JSON text; absent: no error. An error wins over a result."""
    preview: Preview | None = None
    """First characters of the error or result, redacted; for people to read, never judged."""
    oversize: bool = False
