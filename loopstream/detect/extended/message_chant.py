"""`message_chant`: the same text-only turn again and again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from loopstream.detect.extended.base import About, Aim, Params, Rule, Weight
from loopstream.state.extended.book import MESSAGE_TOOL, Book


@dataclass(frozen=True, slots=True)
class ChantParams(Params):
    """Levels count equal messages with nothing learned in between."""

    warn: int = 4
    block: int = 8


class MessageChant(Rule):
    """Reacts to a model that says the same again, volatile parts aside, or nothing at all.

    A text-only turn is reported as a call of the pseudo tool ``__message__``; what the block
    covers is that message, for the runner to end its turn. Messages in turns are a `cycle`.
    Costs O(1).
    """

    name: ClassVar[str] = "message_chant"
    about: ClassVar[About] = About.RUN
    defaults: ClassVar[Params] = ChantParams()
    sticky: ClassVar[bool] = True
    text: ClassVar[str] = "The same message was given {count} times, with nothing new in between."

    def weigh(self, book: Book, thing: Book, params: ChantParams) -> Weight | None:
        """By equal messages."""
        return params.weigh(book.chant) if book.chant > 1 else None

    def aim(self, book: Book, thing: Book) -> Aim:
        """That message."""
        signature = book.chant_signature
        return Aim(MESSAGE_TOOL, ((signature, None, ()),), f"chant:{signature}")

    def variant(self, book: Book, thing: Book) -> str:
        """Which message."""
        return book.chant_signature[-16:]
