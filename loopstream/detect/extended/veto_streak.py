"""`veto_streak`: calls that are refused as part of a loop, and tried all the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from loopstream.detect.extended.base import About, Aim, Params, Rule, Weight
from loopstream.state.extended.book import Book


@dataclass(frozen=True, slots=True)
class VetoParams(Params):
    """Levels count vetoes, until enough was learned in between."""

    warn: int = 2
    abort: int = 5


class VetoStreak(Rule):
    """Reacts to an agent that does not take no for an answer: it ends the run.

    Denials by a policy or a person don't count, they are ordinary failures. Vetoes that move
    from tool to tool are `tool_hopping`'s. Costs O(1).
    """

    name: ClassVar[str] = "veto_streak"
    about: ClassVar[About] = About.RUN
    defaults: ClassVar[Params] = VetoParams()
    text: ClassVar[str] = (
        "{count} calls were refused as part of a loop and tried again all the same, at last of "
        "{tool}."
    )

    def weigh(self, book: Book, thing: Book, params: VetoParams) -> Weight | None:
        """By vetoes."""
        return params.weigh(book.vetoes) if book.vetoes else None

    def aim(self, book: Book, thing: Book) -> Aim:
        """The run."""
        return Aim(book.veto_tools[-1], (), f"vetoes:{book.vetoes}")
