"""What is in force when a partition's fold begins: by its first pin, or by what is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from loopstream.errors import CorruptStateError, DataError
from loopstream.events import Control, Event, Pin
from loopstream.partition import deployment_from_pin, state_from_pin
from loopstream.partition.marker import policy_text
from loopstream.policy.deployment import Deployment
from loopstream.replay.controls import ReplaySources, may_hold_controls
from loopstream.replay.records import Bounds, Log, Record
from loopstream.wire.codec import Decoded
from loopstream.wire.signing import Verifier, open_record

_PIN: Final = b"pin"


@dataclass(frozen=True, slots=True)
class Opening:
    """The begin of a partition's fold.

    Attributes:
        pin: what is in force, found or made.
        deployment: the facts of the prefix.
        note: what people should know about it; None if the partition's own pin was found.
    """

    pin: Pin
    deployment: Deployment
    note: str | None = None

    def state(self, number: int) -> bytes:
        """The marker row that the fold starts from."""
        return state_from_pin(number, self.pin)


def find_opening(
    log: Log,
    number: int,
    bounds: Bounds,
    sources: ReplaySources,
    deployment: Deployment,
    verifier: Verifier | None = None,
) -> Opening:
    """Look the first pin of a partition up; without one, make what it must have said.

    Args:
        deployment: what to take where no pin tells.
        verifier: only a pin that it lets pass counts.

    Raises:
        DataError: the pin's policy is not understood.
    """
    where = f"{log.name}-{number}"
    pins = log.pins()
    if pins is None:
        pin, change = _search(log, number, bounds, sources, verifier)
    else:
        pin, change = pins.get(number), None
    if pin is not None:
        try:
            return Opening(pin, deployment_from_pin(pin))
        except CorruptStateError as error:
            raise DataError(error.message, where=where, hint=error.hint) from None
    note = _note(where, bounds, sources, verifier)
    return Opening(_made(sources, change, deployment), deployment, note)


def _search(
    log: Log, number: int, bounds: Bounds, sources: ReplaySources, verifier: Verifier | None
) -> tuple[Pin | None, int | None]:
    """The first believable pin; else the config offset of the first settings change."""
    change: int | None = None
    for records in log.batches({number: (bounds.begin, bounds.end)}):
        for record in records:
            value = record.value
            if value is None or not (_PIN in value or may_hold_controls(value)):
                continue
            for event in _of_workers(record, verifier):
                if isinstance(event, Pin) and not sources.contradicts(event):
                    return event, None
                if isinstance(event, Control) and event.source == "config" and change is None:
                    change = event.offset
    return None, change


def _made(sources: ReplaySources, change: int | None, deployment: Deployment) -> Pin:
    settings: dict[str, str] = {}
    last = -1
    for record in sources.config_before(change):
        last = record.offset
        if record.value is None:
            settings.pop(record.key, None)
        else:
            settings[record.key] = record.value.decode("utf-8", "replace")
    return Pin(
        v=1,
        type="pin",
        time=0,
        config_offset=last,
        commands_offset=-1,
        settings=settings,
        policy=policy_text(deployment),
    )


def _note(where: str, bounds: Bounds, sources: ReplaySources, verifier: Verifier | None) -> str:
    if not sources.verified:
        return f"{where}: no pin in the file; without --settings detection is off."
    why = "went with retention" if bounds.begin > 0 else "was never written: no worker was here"
    if verifier is not None and verifier.required:
        why += ", or no worker signed it"
    return (
        f"{where}: its pin {why}. Settings are the config topic's before the first change in the "
        "log; profile, mode and idle limit are those of this command's settings."
    )


def decoded(record: Record) -> Decoded:
    """A record's events, whoever wrote them."""
    return open_record(record.value, record.headers)


def controls_in(record: Record, verifier: Verifier | None = None) -> Sequence[Control]:
    """The control events of a record that a worker may have written; cheap where none are."""
    if record.value is None or not may_hold_controls(record.value):
        return ()
    return [event for event in _of_workers(record, verifier) if isinstance(event, Control)]


def _of_workers(record: Record, verifier: Verifier | None) -> Sequence[Event]:
    found = open_record(record.value, record.headers, verifier)
    return () if found.signer else found.events
