"""The state of one run: everything that decides its next verdict, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from loopstream.state.extended.book import Book
from loopstream.state.guard import Guard
from loopstream.state.history import History

THROTTLE_KEYS: Final = 256
REMEMBERED_IDS: Final = 64
# Nothing applied yet.
NO_OFFSET: Final = -1
NO_ORDER: Final = -1
# In the order of the row, which leaves a zero at the end out.
TOTALS: Final = (
    "blocks",
    "calls",
    "gaps",
    "lost",
    "outcomes",
    "refused",
    "warnings",
    "withheld",
)


class Target(NamedTuple):
    """Which calls a standing block covers: one signature, or a tool but for some signatures."""

    signature: str | None = None
    tool: str | None = None
    exclude: tuple[str, ...] = ()

    def covers(self, tool: str, signature: str) -> bool:
        """Whether a call falls under this target."""
        if self.signature is not None:
            return self.signature == signature
        return self.tool == tool and signature not in self.exclude


@dataclass(frozen=True, slots=True)
class Standing:
    """A block or abort in force, as it was announced: enough to announce it again."""

    detector: str
    count: int
    threshold: int
    key: str
    tool: str | None
    paired_tool: str | None = None


class Said(NamedTuple):
    """The newest verdict of a run, for people; ``time`` is the event's, in milliseconds.

    ``order`` is what an operator said, where the verdict carries an order out.
    """

    action: str
    level: str
    detector: str
    times: int
    tool: str | None
    paired_tool: str | None
    time: int
    order: str | None = None


class Totals:
    """What a run has seen so far; shown to people, never judged by.

    ``blocks`` are calls that were judged critical, ``withheld`` the warnings, blocks and aborts
    that were published in mode shadow.
    """

    __slots__ = TOTALS

    def __init__(self) -> None:
        self.calls = self.outcomes = self.refused = 0
        self.warnings = self.blocks = 0
        self.gaps = self.lost = 0
        self.withheld = 0


class RunState:
    """One run scope. Bounded: rings and counters only; `state.pack` turns it into a row."""

    __slots__ = (
        "aborted",
        "agent",
        "appended",
        "ended",
        "epoch",
        "extended",
        "guard",
        "history",
        "key_id",
        "last_event",
        "last_verdict",
        "mutes",
        "offset",
        "ordered",
        "partition",
        "recent_ids",
        "run",
        "runner",
        "scope",
        "seq",
        "session",
        "standing",
        "throttle",
        "totals",
        "verdict_seq",
    )

    def __init__(self, scope: str, partition: int) -> None:
        self.scope = scope
        self.partition = partition
        self.offset = NO_OFFSET
        self.appended = 0
        self.ended: int | None = None
        self.last_event = 0
        # Identity, bound by the first event that names it.
        self.run: str | None = None
        self.agent: str | None = None
        self.session: str | None = None
        self.runner: str | None = None
        # Tenant key that the run's digests are made with; "" for none, None: not known yet.
        self.key_id: str | None = None
        # Duplicates: a runner's own numbering, or the ids seen last.
        self.epoch = -1
        self.seq = -1
        self.recent_ids: list[bytes] = []
        # What is counted and decided.
        self.history = History()
        # Profile ``extended`` counts in its own book, and leaves the history empty.
        self.extended: Book | None = None
        self.guard = Guard()
        # The newest order for all runs of the agent that this run needs not hear of any more.
        self.ordered = NO_ORDER
        self.throttle: dict[bytes, int] = {}
        self.standing: dict[Target, Standing] = {}
        self.mutes: list[bytes] = []
        self.aborted: Standing | None = None
        self.verdict_seq = 0
        self.totals = Totals()
        self.last_verdict: Said | None = None
