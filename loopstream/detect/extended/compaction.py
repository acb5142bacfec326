"""`compaction_thrash` and `compaction_no_gain`: compactions that don't help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from loopstream.detect.extended.base import About, Aim, Params, Rule, Weight
from loopstream.state.extended.book import Book


@dataclass(frozen=True, slots=True)
class ThrashParams(Params):
    """Levels count compactions in a row with at most two calls in between."""

    warn: int = 3
    abort: int = 10


class CompactionThrash(Rule):
    """Reacts to a context that is full again at once after each compaction.

    Whether compactions free anything is `compaction_no_gain`'s question. Costs O(1).
    """

    name: ClassVar[str] = "compaction_thrash"
    about: ClassVar[About] = About.RUN
    defaults: ClassVar[Params] = ThrashParams()
    text: ClassVar[str] = (
        "The context was compacted {count} times with hardly a call in between: something in it "
        "is too large to go on with."
    )

    def weigh(self, book: Book, thing: Book, params: ThrashParams) -> Weight | None:
        """By compactions in a row."""
        return params.weigh(book.idle_compactions + 1) if book.idle_compactions else None

    def aim(self, book: Book, thing: Book) -> Aim:
        """The run."""
        return Aim("", (), "compaction_thrash")


@dataclass(frozen=True, slots=True)
class NoGainParams(Params):
    """Levels count compactions in a row that freed less than 5 % of the tokens."""

    warn: int = 2
    abort: int = 10


class CompactionNoGain(Rule):
    """Reacts to compactions that free next to nothing, so that the next one is due at once.

    Needs the token counts of the compaction event. Costs O(1).
    """

    name: ClassVar[str] = "compaction_no_gain"
    about: ClassVar[About] = About.RUN
    defaults: ClassVar[Params] = NoGainParams()
    text: ClassVar[str] = (
        "{count} compactions in a row freed next to nothing: start anew with less context."
    )

    def weigh(self, book: Book, thing: Book, params: NoGainParams) -> Weight | None:
        """By useless compactions in a row."""
        useless = book.useless_compactions
        return params.weigh(useless) if useless else None

    def aim(self, book: Book, thing: Book) -> Aim:
        """The run."""
        return Aim("", (), "compaction_no_gain")
