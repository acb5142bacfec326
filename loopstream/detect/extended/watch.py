"""After each record: what is alarming about the run, and what no longer is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from loopstream.detect.extended.base import Aim, Detector, Severity, Weight, got_somewhere
from loopstream.detect.extended.limits import Armed, ExtendedLimits
from loopstream.detect.judge import mute_of
from loopstream.state.extended.book import Book, recipient_key
from loopstream.state.extended.tallies import Alarm, Record

# Below this no built-in detector can speak about a call or tool; outside ones are asked always.
_FLOOR: Final = 2
_NOTHING: Final = ""


class Change(NamedTuple):
    """An alarm that was raised, went up, or is still growing."""

    alarm: Alarm
    text: str
    risen: bool
    """It is at a higher level than before, or covers other calls."""
    meant: int
    """The level that the detector asks for, whatever its mode lets through."""


class Watch:
    """Asks the detectors that a record concerns, and again those whose alarms stand.

    Args:
        book: the run's counts; its alarms are kept up to date in place.
        limits: the settings in force.
        mutes: what an operator released.
    """

    def __init__(self, book: Book, limits: ExtendedLimits, mutes: Sequence[bytes]) -> None:
        self._book = book
        self._limits = limits
        self._mutes = mutes
        self.changes: list[Change] = []
        self.lifted = False

    def after(self, record: Record | None, tool: str) -> None:
        """Look at what a record of a tool touched; None: at the run as a whole only."""
        book = self._book
        asked: set[tuple[str, int, str]] | None = set() if book.alarms else None
        calls, tools, servers, recipients, run = self._limits.rules(tool)
        if record is not None:
            call, always = record.call, self._limits.outside
            if always or call.count >= _FLOOR:
                self._ask(calls, call.signature, call, asked)
            if always or call.tool.same >= _FLOOR or call.tool.fails >= _FLOOR:
                self._ask(tools, tool, call.tool, asked)
            if call.server is not None and call.server in book.servers:
                self._ask(servers, f"{call.server:x}", book.servers[call.server], asked)
            if call.effect == "send":
                key = recipient_key(call)
                if key in book.recipients:
                    self._ask(recipients, f"{key:x}", book.recipients[key], asked)
        self._ask(run, _NOTHING, book, asked)
        if asked is not None:
            self._ask_again(asked)

    def _ask(
        self,
        rules: tuple[Armed, ...],
        name: str,
        thing: Any,
        asked: set[tuple[str, int, str]] | None,
    ) -> None:
        for armed in rules:
            weight = armed.detector.weigh(self._book, thing, armed.params)
            if weight is None:
                continue
            key = (armed.detector.name, int(armed.detector.about), name)
            if asked is not None:
                asked.add(key)
            self._raise(key, armed, weight, thing)

    def _raise(self, key: tuple[str, int, str], armed: Armed, weight: Weight, thing: Any) -> None:
        book, detector = self._book, armed.detector
        level = int(weight.severity)
        if armed.mode == "warn":
            level = int(Severity.WARN)
        alarm = book.alarms.get(key)
        shadow, variant = armed.mode == "shadow", detector.variant(book, thing)
        same = alarm is not None and alarm.variant == variant and alarm.shadow == shadow
        if alarm is not None and same and level <= alarm.level:
            if alarm.level == level:
                alarm.count = weight.times
                if level == Severity.WARN:
                    self.changes.append(_change(alarm, detector, weight, risen=False))
            elif not detector.sticky or armed.mode == "warn" or got_somewhere(book, alarm):
                self._lower(alarm, level, weight)
            return
        aim = detector.aim(book, thing)
        if self._mutes and mute_of(aim.subject) in self._mutes:
            return
        before = alarm
        alarm = book.alarms[key] = Alarm(*key, variant)
        alarm.heard = 0 if before is None else before.heard
        _fill(alarm, aim, level, weight, book)
        alarm.shadow = shadow
        self.lifted = self.lifted or before is not None
        self.changes.append(_change(alarm, detector, weight, risen=True))

    def _lower(self, alarm: Alarm, level: int, weight: Weight) -> None:
        alarm.level, alarm.count, alarm.threshold = level, weight.times, weight.threshold
        self.lifted = True

    def _ask_again(self, asked: set[tuple[str, int, str]]) -> None:
        """About alarms that no detector has just confirmed."""
        book = self._book
        for key, alarm in list(book.alarms.items()):
            if key in asked or alarm.level == Severity.ABORT:
                continue
            if not self._stands(alarm):
                del book.alarms[key]
                self.lifted = True

    def _stands(self, alarm: Alarm) -> bool:
        rules = self._limits.rules(alarm.tool)[alarm.about]
        thing = thing_of(self._book, alarm.about, alarm.thing)
        for armed in rules:
            if armed.detector.name != alarm.detector or thing is None:
                continue
            if self._mutes and mute_of(alarm.subject) in self._mutes:
                return False
            if not _fits(alarm, armed):
                return False
            if armed.detector.sticky and alarm.level >= Severity.BLOCK:
                return not got_somewhere(self._book, alarm)
            weight = armed.detector.weigh(self._book, thing, armed.params)
            return weight is not None and weight.severity >= alarm.level
        return False


def thing_of(book: Book, about: int, name: str) -> Any:
    """What an alarm of a name is about; None: nothing is known of it (any more)."""
    return _FIND[about](book, name)


def _fits(alarm: Alarm, armed: Armed) -> bool:
    """Whether an alarm is what the detector's mode lets through: modes may change in mid-run."""
    too_high = armed.mode == "warn" and alarm.level > Severity.WARN
    return alarm.shadow == (armed.mode == "shadow") and not too_high


def _change(alarm: Alarm, detector: Detector, weight: Weight, *, risen: bool) -> Change:
    return Change(alarm, detector.text, risen, int(weight.severity))


def _fill(alarm: Alarm, aim: Aim, level: int, weight: Weight, book: Book) -> None:
    alarm.level, alarm.count, alarm.threshold = level, weight.times, weight.threshold
    alarm.tool, alarm.paired, alarm.subject = aim.tool, aim.paired, aim.subject
    alarm.targets = aim.targets
    alarm.mark, alarm.news = book.changed, book.news


# By `About`.
_FIND: Final[tuple[Callable[[Book, str], Any], ...]] = (
    lambda book, name: book.calls.get(name),
    lambda book, name: book.tools.get(name),
    lambda book, name: book.servers.get(int(name, 16)),
    lambda book, name: book.recipients.get(int(name, 16)),
    lambda book, _: book,
)
