"""`cycle`: a row of steps that repeats as a whole, every result the same."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import ClassVar

from loopstream.detect.extended.base import About, Aim, Params, Rule, Severity, Weight
from loopstream.state.extended.book import Book


@dataclass(frozen=True, slots=True)
class CycleParams(Params):
    """Levels count laps. ``slow`` seconds a step and more are only warned of; a cycle with a
    poll or a wait in it may go on ``wait_factor`` times as long.
    """

    warn: int = 5
    block: int = 8
    max_period: int = 16
    slow: int = 60
    wait_factor: int = 3


class Cycle(Rule):
    """Reacts to the smallest period (2 to 16 steps) that the newest steps have kept.

    A step is a settled call with its normalised result, or a whole parallel batch in any order:
    a batch that is repeated has period 1. One changed result ends the cycle. A single call in a
    row is left to `generic_repeat`, a cycle with varying members to `interleaved_repeat`. Costs
    O(16) while something repeats, O(1) else.
    """

    name: ClassVar[str] = "cycle"
    about: ClassVar[About] = About.RUN
    defaults: ClassVar[Params] = CycleParams()
    sticky: ClassVar[bool] = True
    text: ClassVar[str] = (
        "The same steps ({tool}{paired}) were repeated {count} times in the same order with the "
        "same results. None of them is to be tried again before something has changed."
    )

    def weigh(self, book: Book, thing: Book, params: CycleParams) -> Weight | None:
        """By whole laps."""
        steps = book.steps
        if not steps.runs:
            return None
        period = steps.period(params.warn)
        if not period or period > params.max_period:
            return None
        if period == 1 and len(steps.members[-1]) == 1:
            return None
        laps, waits, quick = steps.laps(period), False, True
        for signature in steps.cycle(period):
            call = book.calls.get(signature)
            waits = waits or (call is not None and (call.poll or call.effect == "wait"))
        weight = (params.scaled(params.wait_factor) if waits else params).weigh(laps)
        quick = steps.pace < params.slow * 1000
        if weight is not None and not quick and weight.severity > Severity.WARN:
            return Weight(Severity.WARN, laps, params.warn)
        return weight

    def aim(self, book: Book, thing: Book) -> Aim:
        """Every call of the cycle."""
        members = _members(book)
        tools = list(dict.fromkeys(signature.rpartition(":")[0] for signature in members))
        targets = tuple((signature, None, ()) for signature in members)
        subject = "cycle:" + "|".join(members)
        return Aim(tools[0], targets, subject, ", ".join(tools[1:]) or None)

    def variant(self, book: Book, thing: Book) -> str:
        """Which calls it is made of."""
        return f"{zlib.crc32('|'.join(_members(book)).encode('utf-8', 'surrogatepass')):08x}"


def _members(book: Book) -> tuple[str, ...]:
    steps = book.steps
    return steps.cycle(steps.period(2) or 1)
