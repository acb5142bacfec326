"""`same_result`: one tool, ever other arguments, always the same result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from loopstream.detect.extended.base import About, Aim, Params, Rule, Weight, tool_but
from loopstream.state.extended.book import Book
from loopstream.state.extended.tallies import Tool


@dataclass(frozen=True, slots=True)
class SameResultParams(Params):
    """Levels count equal results in a row of one tool, with at least ``moves`` changes of the
    arguments.
    """

    warn: int = 10
    block: int = 30
    moves: int = 3


class SameResult(Rule):
    """Reacts to a tool that answers the same whatever it is asked.

    A sweep is no loop: looking at one thing after the other, or changing one after the other,
    may well give the same answer each time, and does not count. Failures are `failure_class`'s;
    arguments that are much alike `near_duplicate`'s. Costs O(1).
    """

    name: ClassVar[str] = "same_result"
    about: ClassVar[About] = About.TOOL
    defaults: ClassVar[Params] = SameResultParams()
    sticky: ClassVar[bool] = True
    text: ClassVar[str] = (
        "{tool} gave the same result {count} times in a row though its arguments changed: other "
        "arguments of the same kind won't help."
    )

    def weigh(self, book: Book, thing: Tool, params: SameResultParams) -> Weight | None:
        """By equal results in a row."""
        if thing.same < params.warn or thing.moves < params.moves:
            return None
        return params.weigh(thing.same)

    def aim(self, book: Book, thing: Tool) -> Aim:
        """The tool, but for calls that gave something else."""
        subject = f"same:{thing.name}:{thing.out:x}"
        return Aim(thing.name, (tool_but(book, thing.name, thing.out),), subject)
