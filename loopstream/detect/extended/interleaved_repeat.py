"""`interleaved_repeat`: the same call and result over and over, with other calls in between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from loopstream.detect.extended.base import About, Aim, Params, Rule, Weight
from loopstream.detect.extended.generic_repeat import (
    RepeatParams,
    aim_at_call,
    is_dense,
    weigh_streak,
)
from loopstream.state.extended.book import Book
from loopstream.state.extended.tallies import Call


@dataclass(frozen=True, slots=True)
class InterleavedParams(RepeatParams):
    """As for `generic_repeat`; ``spread`` is how many records there may be per repeat."""

    warn: int = 8
    block: int = 16
    spread: int = 6


class InterleavedRepeat(Rule):
    """Reacts to one call that keeps coming back with one result though nothing was changed.

    What is read in between does not matter, what is changed does: the same failing test after
    each edit is a new experiment. Where all calls in between repeat too, `cycle` speaks earlier;
    without any see `generic_repeat`. Costs O(1).
    """

    name: ClassVar[str] = "interleaved_repeat"
    about: ClassVar[About] = About.CALL
    defaults: ClassVar[Params] = InterleavedParams()
    text: ClassVar[str] = (
        "{tool} was called {count} times with the same arguments and the same result, other "
        "calls in between, and nothing was changed that could alter it. Change something first."
    )

    def weigh(self, book: Book, thing: Call, params: InterleavedParams) -> Weight | None:
        """By the streak, if it is not spread too thin."""
        count = thing.count
        if count < params.warn or thing.poll or is_dense(thing):
            return None
        if thing.last - thing.since + 1 > count * params.spread:
            return None
        return weigh_streak(book, thing, params)

    def aim(self, book: Book, thing: Call) -> Aim:
        """That call, not the ones in between."""
        return aim_at_call(thing)
