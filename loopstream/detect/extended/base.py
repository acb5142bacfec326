"""What a detector of profile ``extended`` is asked, and what it may answer.

A detector holds no state: what it counts stands in the run's `Book`. It is asked about one thing
whenever a record touched it, and again while an alarm about it stands.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import IntEnum
from typing import Any, ClassVar, Final, NamedTuple, Protocol, Self, TypeVar

from loopstream.state.extended.book import Book
from loopstream.state.extended.tallies import Alarm, Covered

P = TypeVar("P", bound="Params")

MINUTE_MS: Final = 60_000
# So much news after a block, or one fresh change, and the run has got somewhere.
ENOUGH_NEWS: Final = 5
# Calls that a tool-wide block spares, at most: the newest.
MAX_SPARED: Final = 64


class About(IntEnum):
    """What a detector looks at; says what ``thing`` is."""

    CALL = 0
    """A `Call`: one signature."""
    TOOL = 1
    """A `Tool`."""
    SERVER = 2
    """A `Server`."""
    RECIPIENT = 3
    """A `Recipient`."""
    RUN = 4
    """The whole run: the `Book`."""


class Severity(IntEnum):
    """How far a finding goes."""

    WARN = 1
    BLOCK = 2
    ABORT = 3


class Weight(NamedTuple):
    """How bad it is: the count, and the threshold that it has reached."""

    severity: Severity
    times: int
    threshold: int


class Aim(NamedTuple):
    """What a finding is about.

    Attributes:
        tool: the tool that is named to people.
        targets: what a block covers; empty where only the run's end would help.
        subject: what an operator's release mutes: the thing and the result it is stuck on.
        paired: another tool that takes part.
    """

    tool: str
    targets: tuple[Covered, ...]
    subject: str
    paired: str | None = None


@dataclass(frozen=True, slots=True)
class Params:
    """Thresholds of one detector; 0 switches a level off. Counts are of steps."""

    warn: int = 0
    block: int = 0
    abort: int = 0

    def weigh(self, count: int) -> Weight | None:
        """The highest level that a count reaches."""
        if self.abort and count >= self.abort:
            return Weight(Severity.ABORT, count, self.abort)
        if self.block and count >= self.block:
            return Weight(Severity.BLOCK, count, self.block)
        if self.warn and count >= self.warn:
            return Weight(Severity.WARN, count, self.warn)
        return None

    def scaled(self, patience: float) -> Self:
        """The same with all levels moved up by a factor."""
        levels = {name: round(getattr(self, name) * patience) for name in LEVELS}
        return replace(self, **levels)

    def ordered(self) -> Self:
        """The same with each level above the one below it."""
        below, levels = 0, {}
        for name in LEVELS:
            value = getattr(self, name)
            levels[name] = max(value, below + 1) if value else 0
            below = max(below, levels[name])
        return replace(self, **levels)


LEVELS: Final = ("warn", "block", "abort")


def names_of(params: type[Params]) -> tuple[str, ...]:
    """Names of a detector's parameters, in order."""
    return tuple(field.name for field in fields(params))


class Detector(Protocol):
    """One rule.

    Attributes:
        name: stands in verdicts, settings and reports.
        about: what it looks at.
        defaults: its parameters.
        text: the reason, with {tool}, {paired}, {count} and {more}.
        sticky: a block stands until the run gets somewhere, though the count is interrupted.
    """

    name: ClassVar[str]
    about: ClassVar[About]
    defaults: ClassVar[Params]
    text: ClassVar[str]
    sticky: ClassVar[bool]

    def weigh(self, book: Book, thing: Any, params: Any) -> Weight | None:
        """How bad it is with one thing; None: there is nothing to say. O(1)."""
        ...

    def aim(self, book: Book, thing: Any) -> Aim:
        """What a finding covers; asked only when its level or variant is new."""
        ...

    def variant(self, book: Book, thing: Any) -> str:
        """Tells apart findings about one thing that cover different calls."""
        ...


class Rule:
    """Base of detectors: what is the same for most."""

    sticky: ClassVar[bool] = False

    def variant(self, book: Book, thing: Any) -> str:
        """Nothing to tell apart."""
        return ""


def got_somewhere(book: Book, alarm: Alarm) -> bool:
    """Whether the run has made progress since an alarm was raised."""
    return book.changed > alarm.mark or book.news - alarm.news >= ENOUGH_NEWS


def tool_but(book: Book, tool: str, out: int) -> Covered:
    """A whole tool, except its calls that came to something else than ``out``."""
    spared = [
        call.signature
        for call in book.calls.values()
        if call.tool.name == tool and call.count and call.out != out
    ]
    return (None, tool, tuple(sorted(spared[-MAX_SPARED:])))
