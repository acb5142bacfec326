"""`near_duplicate`: the same call with cosmetic changes, always with the same result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from loopstream.detect.extended.base import About, Aim, Params, Rule, Weight, tool_but
from loopstream.state.extended.book import Book
from loopstream.state.extended.tallies import Tool


@dataclass(frozen=True, slots=True)
class NearParams(Params):
    """Levels count calls in a row that are much like the one before, with its result."""

    warn: int = 8
    block: int = 25


class NearDuplicate(Rule):
    """Reacts to arguments of which only a leaf or a word changes, while the result does not.

    Two calls are alike if they share half of their argument leaves or most of their words; a
    change of what the call is about (a path, an id) makes it another call. Stricter than
    `same_result`, so it speaks earlier. Costs O(leaves), at most 16.
    """

    name: ClassVar[str] = "near_duplicate"
    about: ClassVar[About] = About.TOOL
    defaults: ClassVar[Params] = NearParams()
    sticky: ClassVar[bool] = True
    text: ClassVar[str] = (
        "{tool} was called {count} times with nearly the same arguments and the same result: the "
        "details that change don't matter to it."
    )

    def weigh(self, book: Book, thing: Tool, params: NearParams) -> Weight | None:
        """By near duplicates in a row."""
        return params.weigh(thing.near + 1) if thing.near else None

    def aim(self, book: Book, thing: Tool) -> Aim:
        """The tool, but for calls that gave something else."""
        subject = f"near:{thing.name}:{thing.out:x}"
        return Aim(thing.name, (tool_but(book, thing.name, thing.out),), subject)
