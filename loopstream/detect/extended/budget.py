"""`budget`: what a run may spend within a window of event time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from loopstream.detect.extended.base import About, Aim, Params, Rule, Weight
from loopstream.state.extended.book import Book

# The window moves on by a sixteenth of its length.
SLOTS: Final = 16
_PERCENT: Final = 100
_MAX_TOOLS: Final = 32


@dataclass(frozen=True, slots=True)
class BudgetParams(Params):
    """Percent of a limit at which to warn and to block. ``window`` in seconds, 0: no budget.
    Limits of 0 don't count: ``calls``, ``tokens``, ``cost`` (millionths of the currency), and
    ``distinct``: the least share of new calls, in percent, once there are ``least_calls``.
    """

    warn: int = 80
    block: int = 100
    window: int = 0
    calls: int = 0
    tokens: int = 0
    cost: int = 0
    distinct: int = 0
    least_calls: int = 50


class Budget(Rule):
    """Reacts to calls, tokens or cost within a window of event time; off until set.

    Event time is clamped to append time plus five minutes. A block covers every tool that was
    used, and ends by itself when the window has moved on. Costs O(16).
    """

    name: ClassVar[str] = "budget"
    about: ClassVar[About] = About.RUN
    defaults: ClassVar[Params] = BudgetParams()
    text: ClassVar[str] = (
        "{count} % of the run's budget is spent. It may go on when the window has moved on."
    )

    def weigh(self, book: Book, thing: Book, params: BudgetParams) -> Weight | None:
        """By the largest share of a limit."""
        if not params.window:
            return None
        oldest = book.time * SLOTS // (params.window * 1000) - SLOTS
        slots = [slot for slot in book.spent if slot[0] > oldest]
        calls, fresh, tokens, cost = (sum(slot[at] for slot in slots) for at in range(1, 5))
        shares = [
            spent * _PERCENT // limit
            for spent, limit in (
                (calls, params.calls),
                (tokens, params.tokens),
                (cost, params.cost),
            )
            if limit
        ]
        if params.distinct and calls >= params.least_calls:
            share = max(fresh * _PERCENT // calls, 1)
            shares.append(min(params.distinct * _PERCENT // share, 10 * _PERCENT))
        return params.weigh(max(shares, default=0))

    def aim(self, book: Book, thing: Book) -> Aim:
        """Every tool in the history."""
        tools = list(book.tools)[-_MAX_TOOLS:]
        targets = tuple((None, tool, ()) for tool in tools)
        return Aim(tools[-1] if tools else "", targets, "budget")

    def variant(self, book: Book, thing: Book) -> str:
        """How many tools there are."""
        return str(len(book.tools))
