"""`tool_hopping`: one tool after the other is blocked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from loopstream.detect.extended.base import About, Aim, Params, Rule, Weight
from loopstream.state.extended.book import Book


@dataclass(frozen=True, slots=True)
class HoppingParams(Params):
    """Levels count different tools, until enough was learned in between."""

    warn: int = 2
    abort: int = 3


class ToolHopping(Rule):
    """Reacts to an agent that carries its loop on with the next tool: it ends the run.

    Counts tools that were blocked one after the other, or had calls vetoed. One block that
    covers several tools, such as a cycle's, counts once. Costs O(1).
    """

    name: ClassVar[str] = "tool_hopping"
    about: ClassVar[About] = About.RUN
    defaults: ClassVar[Params] = HoppingParams()
    text: ClassVar[str] = (
        "{count} tools were blocked one after the other, at last {tool}: the run carries the same "
        "loop on with other means."
    )

    def weigh(self, book: Book, thing: Book, params: HoppingParams) -> Weight | None:
        """By tools."""
        count = max(len(book.hops), len(book.veto_tools))
        return params.weigh(count) if count > 1 else None

    def aim(self, book: Book, thing: Book) -> Aim:
        """The run."""
        tools = max(book.veto_tools, book.hops, key=len)
        return Aim(tools[-1], (), "hopping:" + "|".join(tools), tools[0])
