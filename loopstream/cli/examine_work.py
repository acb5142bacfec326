"""What ``loopstream doctor`` checks of what goes on: workers, lag, clocks, settings, refusals."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from loopstream.cli.examine import Case, Finding, State
from loopstream.errors import EXIT_SETTINGS, DataError, LoopstreamError

if TYPE_CHECKING:
    from kafka import KafkaConsumer

_PUSH: Final = "Push detector settings: loopstream config push FILE"
_SKEW_MS: Final = 2_000
_LATE_MS: Final = 5 * 60 * 1000
_MUCH_LAG: Final = 50_000
_LOOKED_AT: Final = 1_000
"""Dead letters looked at of each partition, from the end."""
_TOP_CODES: Final = 3
_SEE_CODES: Final = "docs/reference/errors.md says what to do about each code."
_DO_ABOUT: Final = {
    "no_fingerprint": (
        "Runners must fingerprint for the deployment's profile too: "
        'Runner(..., profiles=("extended",)), or whichever deployment.profile is.'
    ),
}


def workers(case: Case) -> Iterator[Finding]:
    """The group has members, and how far they have come."""
    from kafka.errors import CoordinatorNotAvailableError, GroupIdNotFoundError

    from loopstream.cli import kafka

    group = f"{case.settings.prefix}.worker"
    partitions = len(case.described[case.topics.events]["partitions"])
    start = "Start one: loopstream worker"
    never = Finding("workers", State.WARN, "there was never one", start)
    try:
        with kafka.kafka_errors(case.settings), kafka.admin(case.settings) as admin:
            described = admin.describe_groups([group])[group]
            committed = admin.list_group_offsets({group: None})[group]
    except LoopstreamError as error:
        if not isinstance(error.__cause__, CoordinatorNotAvailableError | GroupIdNotFoundError):
            raise
        yield never
        return
    members = len(described["members"])
    # Depending on what its coordinator has loaded, a broker calls an unknown group a dead one.
    if not members and not committed:
        yield never
        return
    if not members:
        yield Finding("workers", State.WARN, "none is in the group", start)
    elif members > partitions:
        todo = f"{members - partitions} have nothing to do; the topic has {partitions}."
        yield Finding("workers", State.WARN, f"{members}, more than partitions", todo)
    else:
        yield Finding("workers", State.OK, f"{members} for {partitions} partitions")
    done = {tp.partition: told.offset for tp, told in committed.items()}
    yield from _lag(case, done)


def _lag(case: Case, done: Mapping[int, int]) -> Iterator[Finding]:
    from loopstream.cli import kafka

    with kafka.consumer(case.settings) as client:
        parts = kafka.partitions_of(client, case.topics.events)
        millis = int(case.settings.timeout_s * 1000)
        ends = client.end_offsets(parts, timeout_ms=millis)
        begins = client.beginning_offsets(parts, timeout_ms=millis)
    lag = sum(max(0, ends[tp] - max(done.get(tp.partition, 0), begins[tp])) for tp in parts)
    lost = sum(begins[tp] > done[tp.partition] for tp in parts if tp.partition in done)
    if lost:
        todo = "Retention overtook the workers: add workers, or keep events for longer."
        yield Finding("lag", State.WARN, f"{lost} partitions lost unread events", todo)
    elif lag > _MUCH_LAG:
        todo = "Add workers, up to the number of partitions."
        yield Finding("lag", State.WARN, f"{lag} records not yet committed", todo)
    else:
        yield Finding("lag", State.OK, f"{lag} records not yet committed")


def clocks(case: Case) -> Iterator[Finding]:
    """The brokers' clock shows in append times, the runners' in event times."""
    newest = list(_newest_events(case))
    if not newest:
        yield Finding("clocks", State.UNKNOWN, "no events yet to compare with")
        return
    ahead = max(appended for appended, _ in newest) - int(time.time() * 1000)
    gaps = [made - appended for appended, made in newest if made]
    if ahead > _SKEW_MS:
        todo = "Set this machine's clock, or the brokers'."
        yield Finding("clocks", State.WARN, f"brokers are {ahead / 1000:g} s ahead of us", todo)
    elif gaps and max(gaps) > _SKEW_MS:
        todo = "Set the runners' clocks: their times are cut to the append time + 5 min."
        detail = f"runners are up to {max(gaps) / 1000:g} s ahead of the brokers"
        yield Finding("clocks", State.WARN, detail, todo)
    elif gaps and min(gaps) < -_LATE_MS:
        todo = "Fine for recorded runs; else runners' clocks are slow, or events wait there."
        detail = f"events are up to {-min(gaps) / 1000:g} s old when they are appended"
        yield Finding("clocks", State.WARN, detail, todo)
    else:
        yield Finding("clocks", State.OK, f"{len(newest)} newest events agree")


def _newest_events(case: Case) -> Iterator[tuple[int, int]]:
    """(append time, event time) in ms of the last record of each partition."""
    from loopstream.cli import kafka
    from loopstream.events import Control, Pin
    from loopstream.wire.codec import decode_record

    with kafka.consumer(case.settings) as client:
        parts = kafka.partitions_of(client, case.topics.events)
        ends = client.end_offsets(parts, timeout_ms=int(case.settings.timeout_s * 1000))
        full = [tp for tp in parts if ends[tp]]
        client.assign(full)
        for tp in full:
            client.seek(tp, ends[tp] - 1)
        waiting, patience = set(full), time.monotonic() + case.settings.timeout_s
        while waiting and time.monotonic() < patience:
            for tp, records in client.poll(timeout_ms=250).items():
                waiting.discard(tp)
                events = decode_record(records[-1].value).events
                own = [e.time for e in events if not isinstance(e, Control | Pin)]
                yield records[-1].timestamp, max(own, default=0)


def settings(case: Case) -> Iterator[Finding]:
    """Detection is on for somebody, no worker would refuse a block, and all of it is heeded."""
    from loopstream.cli.config_notes import switched_on
    from loopstream.cli.config_push import blocks_in_force
    from loopstream.policy.settings import refuse

    blocks = blocks_in_force(case.settings, case.topics.config)
    refused = [f"{key}: {why}" for key, block in blocks.items() if (why := refuse(block))]
    on = switched_on(blocks)
    if refused:
        todo = "Workers keep the block before it. Push one that `config check` likes."
        yield Finding("settings", State.FAIL, "; ".join(refused), todo, EXIT_SETTINGS)
        return
    remarks = list(_remarks(case, blocks))
    if not on:
        detail = "; ".join(["detection is off for everybody", *remarks])
        yield Finding("settings", State.WARN, detail, _PUSH)
    elif remarks:
        todo = "Fine if you meant it; `config check FILE` says the same of a file."
        yield Finding("settings", State.WARN, "; ".join(remarks), todo)
    else:
        yield Finding("settings", State.OK, f"{len(blocks)} blocks, on for {', '.join(on)}")


def _remarks(case: Case, blocks: Mapping[str, Any]) -> Iterator[str]:
    """What `config check` says of the blocks, but that detection is off, which may be meant."""
    from loopstream.cli.config_notes import as_file, line_of, notes_of
    from loopstream.policy.advice import NoteKind

    read = as_file(blocks, case.topics.config)
    profile = case.settings.deployment.profile
    for named in read.blocks:
        for note in notes_of(read, named, profile):
            if note.kind is not NoteKind.OFF:
                yield f"{named.key}: {line_of(note)}"


def dead_letters(case: Case) -> Iterator[Finding]:
    """Nothing was refused within the retention; else the commonest of the newest codes."""
    from kafka.errors import KafkaError

    from loopstream.cli import kafka

    with kafka.consumer(case.settings) as client:
        count = kafka.held(client, case.topics.dead_letters, case.settings)
        if not count:
            yield Finding("dead letters", State.OK, "none")
            return
        try:
            codes = _newest_codes(case, client)
        except KafkaError:  # who may not read them may still be told that they are there
            codes = Counter()
    named = ", ".join(f"{code} {times}" for code, times in codes.most_common(_TOP_CODES))
    newest = f" of the newest {codes.total()}" if codes.total() < count else ""
    detail = f"{count} are held{newest}: {named}" if named else f"{count} are held"
    todo = _DO_ABOUT.get(next(iter(dict(codes.most_common(1))), ""), _SEE_CODES)
    yield Finding("dead letters", State.WARN, detail, todo)


def _newest_codes(case: Case, client: KafkaConsumer) -> Counter[str]:
    """Codes of the last dead letters of each partition."""
    from loopstream.cli import kafka
    from loopstream.cli.tail import Tail
    from loopstream.wire.codec import CONTENT_TYPE
    from loopstream.wire.verdicts import decode_dead_letter

    codes: Counter[str] = Counter()
    parts = kafka.partitions_of(client, case.topics.dead_letters)
    for record in Tail(client, parts, timeout_s=case.settings.timeout_s, last=_LOOKED_AT).records():
        try:
            letter = decode_dead_letter(record.value, dict(record.headers).get(CONTENT_TYPE))
        except DataError:
            codes["undecodable"] += 1
        else:
            codes[letter.code] += 1
    return codes
