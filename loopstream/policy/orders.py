"""What an operator orders for a run, and in whose name."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from loopstream.events.base import MAX_ID
from loopstream.events.verdict import MAX_NOTE

OrderAction = Literal["release", "abort"]
ACTIONS: Final[tuple[OrderAction, ...]] = ("release", "abort")

_UNREADABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


@dataclass(frozen=True, slots=True)
class Order:
    """One record of the command topic, read: bounded, on one line.

    Attributes:
        by: who; None: nobody was named.
        note: why; None: nothing was said.
        offset: where the command stands on its topic.
        agent: it is for all runs of this agent; None: for one run.
    """

    action: OrderAction
    by: str | None
    note: str | None
    offset: int
    agent: str | None = None

    @property
    def reason(self) -> str:
        """As a verdict says it."""
        return f"By {self.by or 'an operator'}: {self.note or 'no reason'}"


class AgentOrder(NamedTuple):
    """The newest order for all runs of an agent, as it stands in the partition's marker row.

    ``appended`` is the append time of its copy in the partition, in milliseconds.
    """

    action: OrderAction
    by: str | None
    note: str | None
    offset: int
    appended: int

    @classmethod
    def of(cls, order: Order, appended: int) -> AgentOrder:
        """An order that has just come back in a partition."""
        return cls(order.action, order.by, order.note, order.offset, appended)

    def order(self, agent: str) -> Order:
        """As it is carried out."""
        return Order(self.action, self.by, self.note, self.offset, agent)


def order_of(key: str, body: str | None, offset: int) -> Order | None:
    """Read a command; None: it is no object with a known action, or not of its key.

    One for all runs of an agent names the agent, and has the agent's id as its key.
    """
    try:
        command = json.loads(body or "")
    except (ValueError, RecursionError):
        return None
    if not isinstance(command, dict) or command.get("agent", key) != key:
        return None
    for action in ACTIONS:
        if command.get("action") == action:
            by, note = _line(command.get("by"), MAX_ID), _line(command.get("reason"), MAX_NOTE)
            return Order(action, by, note, offset, key if "agent" in command else None)
    return None


def _line(value: Any, longest: int) -> str | None:
    """A text of one line that every reader can hold; None: there is none."""
    if not isinstance(value, str):
        return None
    text = value[:longest].encode("utf-8", "replace").decode()
    return _UNREADABLE.sub(" ", text).strip() or None
