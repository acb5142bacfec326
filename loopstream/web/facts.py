"""What the deployment goes by, as far as its own records tell: nothing that this process was told.

The newest run summaries and verdicts name the profile and the mode; the rest stands in the pin of
an events partition, which is looked up among its first records.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

from loopstream.config import Settings
from loopstream.errors import CorruptStateError, LoopstreamError
from loopstream.events import Pin
from loopstream.partition import deployment_from_pin
from loopstream.policy.deployment import PROFILES, Deployment, Mode, Profile
from loopstream.replay.kafka import TopicReader, connected
from loopstream.runtime.settings import worker_settings
from loopstream.runtime.topics import Topics
from loopstream.web.board import Board
from loopstream.wire.signing import Verifier, open_record

UNKNOWN: Final = "unknown"
_AGAIN_S: Final = 30.0
_LOOKED_AT: Final = 2_000
_PARTITIONS: Final = 3
_PIN: Final = b"pin"


class Fact(NamedTuple):
    """What is known of something, and from where."""

    value: str
    origin: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Of the deployment; profile and mode are None where nothing tells them."""

    profile: Profile | None
    mode: Mode | None
    shown: dict[str, Fact]


class Pins:
    """Looks the pin of an events partition up; once it was found, it stays what it is."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._turn = asyncio.Lock()
        self._found: tuple[Deployment, str] | None = None
        self._looked = -_AGAIN_S

    async def find(self) -> tuple[Deployment, str] | None:
        """The deployment that a pin names, and where that stands; None: none was found."""
        async with self._turn:
            if self._found is None and time.monotonic() - self._looked >= _AGAIN_S:
                with suppress(LoopstreamError):  # what is not known is shown so
                    self._found = await asyncio.to_thread(self._look)
                self._looked = time.monotonic()
            return self._found

    def _look(self) -> tuple[Deployment, str] | None:
        settings, topic = self._settings, Topics(self._settings.prefix).events
        verifier = worker_settings(settings).verifier
        with connected(settings.connection, settings.timeout_s) as client:
            reader = TopicReader(client, topic, settings.timeout_s)
            for number in reader.numbers()[:_PARTITIONS]:
                bounds = reader.bounds(number)
                until = min(bounds.end, bounds.begin + _LOOKED_AT)
                for records in reader.batches(number, bounds.begin, until):
                    for record in records:
                        if (deployment := _pinned_in(record, verifier)) is not None:
                            return deployment, f"the pin at events {number}@{record.offset}"
        return None


def _pinned_in(record: Any, verifier: Verifier | None) -> Deployment | None:
    """What a worker's pin in a record says."""
    if record.value is None or _PIN not in record.value:
        return None
    opened = open_record(record.value, record.headers, verifier)
    for event in () if opened.signer else opened.events:
        if isinstance(event, Pin):
            try:
                return deployment_from_pin(event)
            except CorruptStateError:
                continue
    return None


def facts_of(board: Board, pinned: tuple[Deployment, str] | None) -> Facts:
    """What the newest records and a pin come to; the newest goes first."""
    profile = _first(_profiles(board)) or _of_pin(pinned, lambda d: d.profile)
    mode = _first(_modes(board)) or _of_pin(pinned, lambda d: d.mode)
    shown = {
        "Profile": profile,
        "Mode": mode,
        "Announces": _of_pin(pinned, lambda d: d.announce),
        "Forgets a silent run after": _of_pin(pinned, lambda d: f"{d.idle_ms // 60_000} min"),
        "Forgets an ended run after": _of_pin(pinned, lambda d: f"{d.grace_ms // 60_000} min"),
    }
    nothing = Fact(UNKNOWN, "nothing tells it yet: no run was written down, and no pin is near")
    known = next((name for name in PROFILES if profile and name == profile.value), None)
    acted: Mode | None = None
    if mode is not None:
        acted = "shadow" if mode.value == "shadow" else "enforce"
    return Facts(known, acted, {name: fact or nothing for name, fact in shown.items()})


def _first(facts: Iterator[Fact]) -> Fact | None:
    return next(facts, None)


def _profiles(board: Board) -> Iterator[Fact]:
    for run in islice(board.roll.newest(), 1):
        if run.profile is not None:
            yield Fact(run.profile, "the newest run's record")
    for said in islice(board.ring.newest(), 1):
        yield Fact(said.verdict.profile, "the newest verdict")


def _modes(board: Board) -> Iterator[Fact]:
    """A run's record alone tells it: the mode of a verdict may be a detector's."""
    for run in islice(board.roll.newest(), 1):
        if run.profile is not None:
            yield Fact(run.mode or "enforce", "the newest run's record")


def _of_pin(
    pinned: tuple[Deployment, str] | None, value: Callable[[Deployment], str]
) -> Fact | None:
    return None if pinned is None else Fact(value(pinned[0]), pinned[1])
