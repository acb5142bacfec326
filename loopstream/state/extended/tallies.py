"""What is counted of a call, a tool, a server, a recipient."""

from __future__ import annotations

import zlib
from enum import IntEnum
from typing import Final

NEVER: Final = -1
WORD: Final = (1 << 64) - 1
_ODD: Final = 0x9E3779B97F4A7C15


class Kind(IntEnum):
    """How a record stands."""

    PENDING = 0
    OK = 1
    FAILED = 2
    DENIED = 3
    """Proposed, and refused by a policy or a person."""
    VETOED = 4
    """Proposed, and refused as part of a loop."""


class Record:
    """One call or stray outcome, in order of entry.

    ``counted`` is the number of the call's streak that the record is part of. ``leaves`` and
    ``words`` are kept only while it is pending.
    """

    __slots__ = (
        "batch",
        "call",
        "call_id",
        "counted",
        "kind",
        "leaves",
        "offset",
        "out",
        "seq",
        "words",
    )

    def __init__(self, seq: int, call: Call, call_id: str | None, offset: int) -> None:
        self.seq = seq
        self.call = call
        self.call_id = call_id
        self.offset = offset
        self.batch = 0
        self.out = 0
        self.kind = Kind.PENDING
        self.counted = NEVER
        self.leaves = b""
        self.words = b""


class Call:
    """Everything known of one signature (tool and masked arguments) within the history.

    ``count`` records in a row, parallel ones once, came to ``out`` without any progress that the
    call depends on; ``since`` and ``last`` are the first and last one's sequence numbers. Times
    are event times in ms.
    """

    __slots__ = (
        "ack",
        "batch",
        "count",
        "effect",
        "failed",
        "key",
        "last",
        "mark",
        "out",
        "pending",
        "poll",
        "records",
        "resource",
        "server",
        "signature",
        "since",
        "streak",
        "subject",
        "time",
        "time_first",
        "tool",
    )

    def __init__(self, tool: Tool, signature: str, key: int) -> None:
        self.tool = tool
        self.signature = signature
        self.key = key
        self.poll = False
        self.effect: str | None = None
        self.resource: int | None = None
        self.subject: int | None = None
        self.server: int | None = None
        self.records = 0
        self.pending: list[Record] = []
        self.out = 0
        self.count = 0
        self.streak = 0
        self.since = 0
        self.last = 0
        self.mark = 0
        self.batch = 0
        self.time_first = 0
        self.time = 0
        self.ack = False
        self.failed = False

    @classmethod
    def signed(cls, tool: Tool, signature: str) -> Call:
        """A new call of a tool; the signature ends with the hexadecimal digest."""
        return cls(tool, signature, int(signature[-16:], 16) ^ (tool.key * _ODD & WORD))

    def take_pending(self, call_id: str | None) -> Record | None:
        """Remove and return the newest pending record, or the newest with this call id."""
        pending = self.pending
        if not pending:
            return None
        if not call_id or pending[-1].call_id == call_id:
            return pending.pop()
        for at in range(len(pending) - 2, -1, -1):
            if pending[at].call_id == call_id:
                return pending.pop(at)
        return None

    @property
    def interval(self) -> float:
        """Mean time between the records of the streak, in milliseconds."""
        return (self.time - self.time_first) / (self.count - 1) if self.count > 1 else 0.0


class Tool:
    """One tool: its newest results in a row that are equal, and its newest failures alike.

    ``same`` results in a row came to ``out``, ``moves`` times with other arguments than the one
    before; ``near`` of them with arguments much like the ones before. ``fails`` failures in a
    row are of one class.
    """

    __slots__ = (
        "batch",
        "calls",
        "fail_batch",
        "fail_class",
        "fail_kind",
        "fail_mark",
        "fail_time",
        "fails",
        "key",
        "last",
        "leaves",
        "mark",
        "moves",
        "name",
        "near",
        "out",
        "same",
        "subject",
        "words",
    )

    @classmethod
    def named(cls, name: str) -> Tool:
        """A new tool."""
        return cls(name, zlib.crc32(name.encode("utf-8", "surrogatepass")))

    def __init__(self, name: str, key: int) -> None:
        self.name = name
        self.key = key
        self.calls = 0
        self.out = 0
        self.same = 0
        self.moves = 0
        self.near = 0
        self.mark = 0
        self.last = 0
        self.batch = 0
        self.subject: int | None = None
        self.leaves = b""
        self.words = b""
        self.fail_class = 0
        self.fail_kind = ""
        self.fails = 0
        self.fail_mark = 0
        self.fail_time = 0
        self.fail_batch = 0


class Server:
    """One server: failures of one class in a row, over all of its tools."""

    __slots__ = ("batch", "fail_class", "fails", "kind", "time", "tools")

    def __init__(self, fail_class: int, kind: str) -> None:
        self.fail_class = fail_class
        self.kind = kind
        self.fails = 0
        self.time = 0
        self.batch = 0
        self.tools: list[str] = []


class Recipient:
    """Sends of one tool to one recipient: all, those much alike, and those with nothing new
    learned in between.
    """

    __slots__ = ("bare", "count", "near", "news", "sketch", "time", "time_first", "tool")

    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.count = 0
        self.near = 0
        self.bare = 0
        self.news = 0
        self.sketch = b""
        self.time_first = 0
        self.time = 0

    @property
    def interval(self) -> float:
        """Mean time between the sends that are much alike, in milliseconds."""
        return (self.time - self.time_first) / (self.near - 1) if self.near > 1 else 0.0


class Alarm:
    """A finding that stands.

    ``about`` and ``thing`` name what it is about (a signature, a tool, ...), ``variant`` which
    shape it had, ``subject`` what an operator's release mutes. ``level`` is 1 for a warning, 2 for
    a block, 3 for an abort. ``heard`` is the count at its first warning, 0 before. ``targets`` are
    (signature, tool, signatures excepted). ``mark`` and ``news`` are the book's when it became
    critical: progress since then lifts it.
    """

    __slots__ = (
        "about",
        "count",
        "detector",
        "heard",
        "level",
        "mark",
        "news",
        "paired",
        "shadow",
        "subject",
        "targets",
        "thing",
        "threshold",
        "tool",
        "variant",
    )

    def __init__(self, detector: str, about: int, thing: str, variant: str) -> None:
        self.detector = detector
        self.about = about
        self.thing = thing
        self.variant = variant
        self.level = 0
        self.shadow = False
        self.heard = 0
        self.count = 0
        self.threshold = 0
        self.mark = 0
        self.news = 0
        self.tool = ""
        self.paired: str | None = None
        self.subject = ""
        self.targets: tuple[Covered, ...] = ()


# Signature, or tool with signatures excepted: the fields of `state.run.Target`.
Covered = tuple[str | None, str | None, tuple[str, ...]]


def alike(one: bytes, other: bytes) -> float:
    """Share of common digests (4 bytes each) in the larger of two sketches; 0 without any."""
    if not one or not other:
        return 0.0
    if one == other:
        return 1.0
    ours = {one[at : at + 4] for at in range(0, len(one), 4)}
    theirs = {other[at : at + 4] for at in range(0, len(other), 4)}
    return len(ours & theirs) / max(len(ours), len(theirs))
