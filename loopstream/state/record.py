"""One entry of a run's history, and what is counted for each call signature."""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

# Nothing has settled yet: every record is newer than this.
NEVER: Final = -1


# Neither refers to anything that refers to it. A state has sixty of them, which the cycle collector
# of a compiled build need not look at.
@mypyc_attr(acyclic=True)
class Call:
    """Everything known of one signature (tool and arguments) within a history.

    ``streak`` counts the newest settled records in a row, by entry, that share ``outcome``;
    pending ones are skipped. ``broken_at`` is the sequence number of the newest settled record
    with another outcome: whatever settles before it can't touch the streak any more.
    """

    __slots__ = (
        "broken_at",
        "newest_settled",
        "outcome",
        "poll",
        "records",
        "signature",
        "streak",
        "tool",
    )

    def __init__(self, tool: str, signature: str, poll: bool) -> None:
        self.tool = tool
        self.signature = signature
        self.poll = poll
        self.records = 0
        self.streak = 0
        self.outcome: str | None = None
        self.broken_at = NEVER
        self.newest_settled = NEVER


@mypyc_attr(acyclic=True)
class Record:
    """One call or stray outcome, in order of entry. ``result`` is None until it settles.

    ``vetoed``, ``failure`` and ``no_progress`` are only set by profile ``reference-2026-9``:
    a refused call settles without a result, and failed commands have an identity of their own.
    """

    __slots__ = (
        "call",
        "call_id",
        "failure",
        "no_progress",
        "offset",
        "result",
        "seq",
        "unknown_tool",
        "vetoed",
    )

    def __init__(self, seq: int, call: Call, call_id: str | None, offset: int) -> None:
        self.seq = seq
        self.call = call
        self.call_id = call_id
        self.offset = offset
        self.result: str | None = None
        self.unknown_tool: str | None = None
        self.vetoed = False
        self.no_progress = False
        self.failure: str | None = None

    @property
    def pending(self) -> bool:
        """Whether no outcome has come yet."""
        return self.result is None and not self.vetoed
