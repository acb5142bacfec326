"""What is written down about a call: its fields on the wire, beside those of the envelope."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from loopstream.events.text import short_name
from loopstream.events.tool import MAX_PREVIEW
from loopstream.fingerprint.calls import signature
from loopstream.fingerprint.profiles import EXTENDED
from loopstream.sdk.capture import Part, visible
from loopstream.sdk.counters import Complaints, Counters
from loopstream.sdk.decisions import Call
from loopstream.sdk.names import bounded_id, printable, tool_name
from loopstream.sdk.options import Options
from loopstream.sdk.prints import Printer
from loopstream.sdk.stream import Fields
from loopstream.sdk.values import Json, to_json


class Spent(NamedTuple):
    """What the model message that made a call took.

    Attributes:
        tokens: all of them.
        cost: in the deployment's currency.
    """

    tokens: int | None = None
    cost: float | None = None

    def fields(self) -> Fields:
        """As the wire has it: cost in millionths.

        Raises:
            ValueError: less than nothing, or no number.
        """
        fields: Fields = {}
        if self.tokens is not None:
            fields["tokens"] = _count(self.tokens)
        if self.cost is not None:
            fields["cost"] = _count(round(self.cost * 1_000_000))
        return fields


NOTHING_SPENT: Final = Spent()


def _count(number: int) -> int:
    if not 0 <= number < 2**63:
        raise ValueError("tokens and cost can't be less than nothing")
    return int(number)


@dataclass(frozen=True, slots=True)
class Scribe:
    """Writes calls and outcomes as the capture mode wants them; has no memory."""

    options: Options
    printer: Printer
    counters: Counters
    complaints: Complaints

    def call(
        self,
        tool: str,
        args: object,
        call_id: str | None,
        batch: str | None,
        spent: Spent = NOTHING_SPENT,
    ) -> tuple[Call, Fields]:
        """A call that has no event id yet, and the fields of its event."""
        name = tool_name(tool, self.options.normalize_tools)
        given = to_json(args)
        asked, fp = self.printer.call(name, given)
        if EXTENDED in fp:
            try:
                fp[EXTENDED].update(spent.fields())
            except (TypeError, ValueError, OverflowError) as error:
                self.trouble("tokens or cost", error)
        fields: Fields = {"tool": name, "fp": fp}
        if call_id is not None:
            fields["call_id"] = short_name(printable(call_id))
        if batch is not None:
            fields["batch"] = bounded_id(batch)
        if given.oversize:
            fields["oversize"] = True
        self._show(fields, name, "args", given)
        call = Call(
            event="",
            tool=name,
            call_id=fields.get("call_id"),
            batch=fields.get("batch"),
            signature=signature(name, asked.signed),
            asked=asked,
            args=fields.get("args"),
            oversize=given.oversize,
        )
        return call, fields

    def outcome(self, call: Call, result: Json, error: Json, executed: bool) -> Fields:
        """The fields of an outcome's event."""
        fields: Fields = {
            "tool": call.tool,
            "fp": self.printer.outcome(call.tool, call.asked, result, error),
        }
        if call.call_id is not None:
            fields["call_id"] = call.call_id
        if call.batch is not None:
            fields["batch"] = call.batch
        if not executed:
            fields["executed"] = False
        if call.oversize or result.oversize or error.oversize:
            fields["oversize"] = True
        if call.args is not None:
            fields["args"] = call.args
        if error.given:
            self._show(fields, call.tool, "error", error)
        else:
            self._show(fields, call.tool, "result", result)
        return fields

    def trouble(self, where: str, error: Exception) -> None:
        """Count and log that something could not be reported."""
        self.counters.add("errors")
        # The class alone: a message may repeat what the agent handed over.
        self.complaints.say(where, "%s: %s; it is not reported.", where, type(error).__qualname__)

    def _show(self, fields: Fields, tool: str, part: Part, value: Json) -> None:
        """Add what the capture mode lets others see of a value."""
        options = self.options
        if options.capture == "digests":
            return
        try:
            text = visible(options.redact, tool, part, value)
        except Exception as error:  # noqa: BLE001 - a hook that fails must not let the value out
            self.trouble("redact", error)
            return
        if text is None:
            return
        if options.capture == "full":
            fields[part] = text
        else:
            fields["preview"] = text[:MAX_PREVIEW]
