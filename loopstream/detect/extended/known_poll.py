"""`known_poll_no_progress`: a declared poll that always answers the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from loopstream.detect.extended.base import About, Aim, Params, Rule, Severity, Weight
from loopstream.detect.extended.generic_repeat import aim_at_call
from loopstream.state.extended.book import Book
from loopstream.state.extended.tallies import Call


@dataclass(frozen=True, slots=True)
class PollParams(Params):
    """Levels count equal answers; polls at least ``slow`` seconds apart are never blocked."""

    warn: int = 10
    block: int = 20
    slow: int = 30


class KnownPoll(Rule):
    """Reacts to polls (by tool and action, or declared in the settings) without progress.

    Quick ones are blocked, slow ones only warned of: a quiet build is no loop. For other calls
    see `generic_repeat`. Costs O(1).
    """

    name: ClassVar[str] = "known_poll_no_progress"
    about: ClassVar[About] = About.CALL
    defaults: ClassVar[Params] = PollParams()
    text: ClassVar[str] = (
        "Polling with {tool} gave the same answer {count} times: check whether what it waits for "
        "is still alive, or wait longer between two polls."
    )

    def weigh(self, book: Book, thing: Call, params: PollParams) -> Weight | None:
        """By the streak of equal answers and the mean interval."""
        if thing.count < params.warn or not thing.poll or thing.mark < book.depends_on(thing):
            return None
        weight = params.weigh(thing.count)
        slow = not thing.failed and thing.interval >= params.slow * 1000
        if weight is not None and slow and weight.severity > Severity.WARN:
            return Weight(Severity.WARN, weight.times, params.warn)
        return weight

    def aim(self, book: Book, thing: Call) -> Aim:
        """That poll."""
        return aim_at_call(thing)
