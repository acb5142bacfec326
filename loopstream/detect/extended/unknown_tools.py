"""`unknown_tools`: tools that don't exist, under one name or ever other ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from loopstream.detect.extended.base import About, Aim, Params, Rule, Severity, Weight
from loopstream.state.extended.book import Book


@dataclass(frozen=True, slots=True)
class UnknownParams(Params):
    """Levels count calls of missing tools without a success in between; the run is ended only
    where at least ``names`` names were tried.
    """

    warn: int = 4
    block: int = 8
    abort: int = 16
    names: int = 3


class UnknownTools(Rule):
    """Reacts to calls of tools that don't exist, however they are called.

    A block can only cover names that were tried; guessing on ends the run. Costs O(1).
    """

    name: ClassVar[str] = "unknown_tools"
    about: ClassVar[About] = About.RUN
    defaults: ClassVar[Params] = UnknownParams()
    sticky: ClassVar[bool] = True
    text: ClassVar[str] = (
        "{count} calls in a row named tools that don't exist ({tool}{paired}). Use only tools that "
        "are offered."
    )

    def weigh(self, book: Book, thing: Book, params: UnknownParams) -> Weight | None:
        """By unknown names in a row."""
        weight = params.weigh(book.unknown) if book.unknown else None
        few = len(book.unknown_tools) < params.names
        if weight is not None and few and weight.severity is Severity.ABORT:
            return Weight(Severity.BLOCK, weight.times, params.block)
        return weight

    def aim(self, book: Book, thing: Book) -> Aim:
        """Every name that was tried."""
        names = book.unknown_tools
        targets = tuple((None, name, ()) for name in names)
        subject = "unknown:" + "|".join(names)
        return Aim(names[0], targets, subject, ", ".join(names[1:]) or None)

    def variant(self, book: Book, thing: Book) -> str:
        """How many names there are."""
        return str(len(book.unknown_tools))
