"""`send_storm`: outward messages to one recipient, much alike or simply too many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from loopstream.detect.extended.base import About, Aim, Params, Rule, Severity, Weight
from loopstream.state.extended.book import MAX_RECIPIENTS, Book, recipient_key
from loopstream.state.extended.tallies import Recipient


@dataclass(frozen=True, slots=True)
class SendParams(Params):
    """``warn`` counts messages much alike, ``block`` those with nothing learned in between;
    ``warn_all`` and ``block_all`` count all messages to the recipient. Messages at least ``slow``
    seconds apart get ``slow_factor`` times as many, and only ``block_all`` blocks them.
    """

    warn: int = 3
    block: int = 6
    warn_all: int = 10
    block_all: int = 60
    slow: int = 240
    slow_factor: int = 4


class SendStorm(Rule):
    """Reacts to sends of one tool to one recipient; results don't matter.

    Its limits are lower than others': what was sent can't be taken back. Costs O(words), at most
    12.
    """

    name: ClassVar[str] = "send_storm"
    about: ClassVar[About] = About.RECIPIENT
    defaults: ClassVar[Params] = SendParams()
    sticky: ClassVar[bool] = True
    text: ClassVar[str] = (
        "{count} messages went out by {tool} to the same recipient, most of them much alike. Don't "
        "send another one."
    )

    def weigh(self, book: Book, thing: Recipient, params: SendParams) -> Weight | None:
        """By messages alike, else by all."""
        if params.block_all and thing.count >= params.block_all:
            return Weight(Severity.BLOCK, thing.count, params.block_all)
        slow = thing.interval >= params.slow * 1000
        if not slow and params.block and thing.bare >= params.block:
            return Weight(Severity.BLOCK, thing.bare, params.block)
        warn = params.warn * params.slow_factor if slow else params.warn
        if warn and thing.near >= warn:
            return Weight(Severity.WARN, thing.near, warn)
        warn = params.warn_all * params.slow_factor if slow else params.warn_all
        if warn and thing.count >= warn:
            return Weight(Severity.WARN, thing.count, warn)
        return None

    def aim(self, book: Book, thing: Recipient) -> Aim:
        """The tool, but for calls that wrote to others."""
        spared = [
            call.signature
            for call in book.calls.values()
            if call.tool.name == thing.tool and book.recipients.get(recipient_key(call)) != thing
        ]
        target = (None, thing.tool, tuple(sorted(spared[-2 * MAX_RECIPIENTS :])))
        return Aim(thing.tool, (target,), f"sends:{thing.tool}:{thing.count // 10}")
