"""`failure_class`: one kind of failure over and over, of a tool or of a whole server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from loopstream.detect.extended.base import About, Aim, Params, Rule, Severity, Weight
from loopstream.state.extended.book import Book
from loopstream.state.extended.tallies import Server, Tool

# Causes outside of the call: other arguments don't help.
_OUTSIDE: Final = frozenset(
    {"rate_limit", "auth", "permission", "connection", "timeout", "server", "denied"}
)


@dataclass(frozen=True, slots=True)
class FailureParams(Params):
    """Levels count failures of one class in a row. Failures that other arguments may mend get
    ``own_factor`` times as many, and things not found ``sweep_factor`` times. ``cool`` seconds
    after the last failure an outside cause may be tried again.
    """

    warn: int = 6
    block: int = 12
    own_factor: float = 1.25
    sweep_factor: float = 2.5
    cool: int = 600

    def of_kind(self, kind: str) -> FailureParams:
        """Levels for one kind of failure."""
        if kind in _OUTSIDE:
            return self
        return self.scaled(self.sweep_factor if kind == "not_found" else self.own_factor)


class FailureClass(Rule):
    """Reacts to a tool that keeps failing for one cause, whatever the arguments are.

    The class is the kind of error with its HTTP or exit code, and the masked text where these
    don't say all. A success of the tool ends the row, and so does a change that may mend the
    cause. Calls that are equal too are `generic_repeat`'s; names that don't exist
    `unknown_tools`'. Costs O(1).
    """

    name: ClassVar[str] = "failure_class"
    about: ClassVar[About] = About.TOOL
    defaults: ClassVar[Params] = FailureParams()
    text: ClassVar[str] = (
        "{tool} failed {count} times in a row for the same cause, with different arguments. "
        "Trying again won't mend it: deal with the cause, or report it."
    )

    def weigh(self, book: Book, thing: Tool, params: FailureParams) -> Weight | None:
        """By failures in a row."""
        if thing.fails < params.warn or thing.fail_kind == "unknown_tool":
            return None
        outside = thing.fail_kind in _OUTSIDE
        if not outside and book.changed > thing.fail_mark:
            return None
        weight = params.of_kind(thing.fail_kind).weigh(thing.fails)
        return _cooled(weight, outside and book.time - thing.fail_time >= params.cool * 1000)

    def aim(self, book: Book, thing: Tool) -> Aim:
        """The tool, but for calls that worked."""
        subject = f"failing:{thing.name}:{thing.fail_class:x}"
        return Aim(thing.name, (_but_working(book, thing.name),), subject)


class ServerFailures(Rule):
    """As `FailureClass`, over all tools of one server (MCP server, or host) together.

    Only causes outside of the call count, such as a refused connection.
    """

    name: ClassVar[str] = "failure_class"
    about: ClassVar[About] = About.SERVER
    defaults: ClassVar[Params] = FailureParams()
    text: ClassVar[str] = (
        "The server behind {tool}{paired} failed {count} times in a row for the same cause. Its "
        "tools are not to be tried again for now; report it, or go on without them."
    )

    def weigh(self, book: Book, thing: Server, params: FailureParams) -> Weight | None:
        """By failures in a row."""
        if thing.fails < params.warn or len(thing.tools) < 2:
            return None
        cool = book.time - thing.time >= params.cool * 1000
        return _cooled(params.weigh(thing.fails), cool)

    def aim(self, book: Book, thing: Server) -> Aim:
        """Every tool of the server that was seen to fail."""
        targets = tuple(_but_working(book, tool) for tool in thing.tools)
        subject = f"server:{'|'.join(thing.tools)}:{thing.fail_class:x}"
        return Aim(thing.tools[0], targets, subject, ", ".join(thing.tools[1:]) or None)

    def variant(self, book: Book, thing: Server) -> str:
        """How many tools are known to fail."""
        return str(len(thing.tools))


def _cooled(weight: Weight | None, cool: bool) -> Weight | None:
    if weight is None or not cool:
        return weight
    return Weight(Severity.WARN, weight.times, weight.threshold)


def _but_working(book: Book, tool: str) -> tuple[None, str, tuple[str, ...]]:
    spared = [
        call.signature
        for call in book.calls.values()
        if call.tool.name == tool and call.count and not call.failed
    ]
    return (None, tool, tuple(sorted(spared[-64:])))
