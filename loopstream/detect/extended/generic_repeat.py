"""`generic_repeat`: the same call again and again, with the same result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from loopstream.detect.extended.base import About, Aim, Params, Rule, Weight
from loopstream.state.extended.book import Book
from loopstream.state.extended.tallies import Call

# In a row though for one stray call in five.
_DENSE: int = 5


@dataclass(frozen=True, slots=True)
class RepeatParams(Params):
    """Levels count equal results; ``slow`` is the mean interval in seconds from which on
    ``slow_factor`` times as many are allowed (failures excepted).
    """

    warn: int = 6
    block: int = 10
    slow: int = 60
    slow_factor: int = 3


class GenericRepeat(Rule):
    """Reacts to one call made in a row with one normalised result.

    Volatile parts of arguments and results don't count, and neither does a repeat after
    something was changed that the call depends on. For repeats with other calls in between see
    `interleaved_repeat`, for declared polls `known_poll_no_progress`. Costs O(1).
    """

    name: ClassVar[str] = "generic_repeat"
    about: ClassVar[About] = About.CALL
    defaults: ClassVar[Params] = RepeatParams()
    text: ClassVar[str] = (
        "{tool} was called {count} times in a row with the same arguments and the same result. "
        "Repeating it brings nothing new: do something else, or report that you are stuck."
    )

    def weigh(self, book: Book, thing: Call, params: RepeatParams) -> Weight | None:
        """By the streak of equal results."""
        count = thing.count
        if count < params.warn or thing.poll or not is_dense(thing):
            return None
        return weigh_streak(book, thing, params)

    def aim(self, book: Book, thing: Call) -> Aim:
        """That call."""
        return aim_at_call(thing)


def weigh_streak(book: Book, call: Call, params: RepeatParams) -> Weight | None:
    """A streak without progress; slow ones, and calls that only wait, have more patience."""
    if call.mark < book.depends_on(call):
        return None
    patient = call.effect == "wait" or (not call.failed and call.interval >= params.slow * 1000)
    if not patient:
        return params.weigh(call.count)
    return params.scaled(params.slow_factor).weigh(call.count)


def is_dense(call: Call) -> bool:
    """Whether the streak's records stand next to each other, but for a few."""
    return (call.last - call.since + 1) * (_DENSE - 1) <= call.count * _DENSE


def aim_at_call(call: Call) -> Aim:
    """One call, stuck on its result."""
    return Aim(
        call.tool.name, ((call.signature, None, ()),), f"stuck:{call.signature}:{call.out:x}"
    )
