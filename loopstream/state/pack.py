"""A run's state as a row: packed msgpack with a version, every digest kept once.

A row is an array. It begins with what can be read without unpacking the rest (`peek`): version,
partition, last applied offset, append time of the last record, append time of the run's end.
Counters are not stored: they follow from the records.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgpack

from loopstream.errors import CorruptStateError
from loopstream.state.extended.pack import pack_book, unpack_book
from loopstream.state.guard import Guard
from loopstream.state.history import History
from loopstream.state.interning import Digests, Names, fold, name_at, read_digests, unfold
from loopstream.state.record import Call, Record
from loopstream.state.run import NO_ORDER, TOTALS, RunState, Said, Standing, Target, Totals

ROW_VERSION: Final = 1
_KEY_BYTES: Final = 16
# Columns of a record's outcome index: 0 is pending, 1 a veto, from 2 on a result.
_PENDING: Final = 0
_VETOED: Final = 1
_FIRST_RESULT: Final = 2
# Offsets are evidence, and evidence is looked for among the newest records alone.
OFFSETS_KEPT: Final = 64
# An array header and five integers of at most nine bytes each.
_HEAD_BYTES: Final = 64
_HINT: Final = "Stop the worker, delete the changelog and let it rebuild from the events."


class RowHead(NamedTuple):
    """What a row says of itself without being unpacked."""

    partition: int
    offset: int
    appended: int
    ended: int | None


def peek(row: bytes) -> RowHead:
    """Read a row's head only: cheap enough for each record of a recovery.

    Raises:
        CorruptStateError: these bytes are no row of a version that this code reads.
    """
    unpacker = msgpack.Unpacker(max_buffer_size=0)
    unpacker.feed(row[:_HEAD_BYTES])
    try:
        unpacker.read_array_header()
        version = unpacker.unpack()
        if version == ROW_VERSION:
            return RowHead(*(unpacker.unpack() for _ in RowHead._fields))
    except Exception as error:
        raise CorruptStateError("a row that is no row.", hint=_HINT) from error
    raise CorruptStateError(f"a row of version {version!r}.", hint=_HINT)


def pack(state: RunState) -> bytes:
    """The state as a row; equal states give equal bytes."""
    digests, names = Digests(), Names()
    who = [state.agent, state.session, state.runner, state.key_id]
    body = [
        # Nearly every scope is the run's id, and that is the row's key.
        [state.run == state.scope or state.run, *who],
        [state.epoch, state.seq, b"".join(state.recent_ids)],
        state.last_event,
        _pack_guard(state.guard, digests),
        "" if state.ordered == NO_ORDER else state.ordered,
        [b"".join(state.throttle), list(state.throttle.values())],
        [_pack_standing(t, s, digests, names) for t, s in state.standing.items()],
        b"".join(state.mutes),
        None if state.aborted is None else _pack_standing(None, state.aborted, digests, names),
        state.verdict_seq,
        _pack_totals(state.totals),
        _pack_said(state.last_verdict),
        _pack_history(state.history, digests, names),
    ]
    head = [ROW_VERSION, state.partition, state.offset, state.appended, state.ended]
    if state.extended is not None:
        # Last, and only there: rows of other profiles keep their bytes.
        body.append(pack_book(state.extended, digests, names))
    return bytes(msgpack.packb([*head, digests.blob(), names.table(), *body]))


def unpack(scope: str, row: bytes) -> RunState:
    """The state that `pack` made the row of.

    Raises:
        CorruptStateError: these bytes are no row of a version that this code reads.
    """
    try:
        fields = msgpack.unpackb(row, raw=False, strict_map_key=True)
        version = fields[0]
        if version == ROW_VERSION:
            return _restore(scope, fields)
    except Exception as error:
        message = f"a row that does not unpack ({type(error).__name__})."
        raise CorruptStateError(message, where=scope, hint=_HINT) from error
    raise CorruptStateError(f"a row of version {version!r}.", where=scope, hint=_HINT)


def _restore(scope: str, fields: list[Any]) -> RunState:
    state = RunState(scope, fields[1])
    state.offset, state.appended, state.ended = fields[2:5]
    digests, names = read_digests(fields[5]), fields[6]
    (
        (run, state.agent, state.session, state.runner, state.key_id),
        (state.epoch, state.seq, recent_ids),
        state.last_event,
        guard,
        ordered,
        (throttle_keys, throttle_buckets),
        standing,
        mutes,
        aborted,
        state.verdict_seq,
        totals,
        last_verdict,
        history,
        *extended,
    ) = fields[7:]
    state.run = scope if run is True else run
    state.recent_ids = _cut(recent_ids)
    state.ordered = NO_ORDER if ordered == "" else ordered
    state.guard = _unpack_guard(guard, digests)
    state.throttle = dict(zip(_cut(throttle_keys), throttle_buckets, strict=True))
    state.standing = dict(_unpack_standing(item, digests, names) for item in standing)
    state.mutes = _cut(mutes)
    state.aborted = None if aborted is None else _unpack_standing(aborted, digests, names)[1]
    for name, value in zip(TOTALS, totals, strict=False):
        setattr(state.totals, name, value)
    state.last_verdict = None if last_verdict is None else Said(*last_verdict)
    state.history = _unpack_history(history, digests, names)
    if extended:
        state.extended = unpack_book(extended[0], digests, names)
    return state


def _pack_totals(totals: Totals) -> list[int]:
    """Shadow verdicts only where there are any: other rows keep their bytes."""
    values = [getattr(totals, name) for name in TOTALS]
    return values if totals.withheld else values[:-1]


def _pack_said(said: Said | None) -> list[Any] | None:
    """An operator's words only where there are any: other rows keep their bytes."""
    if said is None:
        return None
    return list(said if said.order is not None else said[:-1])


def _cut(blob: bytes) -> list[bytes]:
    return [blob[at : at + _KEY_BYTES] for at in range(0, len(blob), _KEY_BYTES)]


# -- guard and standing blocks -------------------------------------------------------------


def _pack_guard(guard: Guard, digests: Digests) -> list[Any] | None:
    if guard.remaining == 0:
        return None  # spent or never armed: nothing of it matters any more
    first = None if guard.first is None else [fold(text, digests) for text in guard.first]
    return [guard.window, guard.remaining, guard.alike, first]


def _unpack_guard(packed: list[Any] | None, digests: list[str]) -> Guard:
    guard = Guard()
    if packed is not None:
        guard.window, guard.remaining, guard.alike, first = packed
        guard.first = (
            None if first is None else (unfold(first[0], digests), unfold(first[1], digests))
        )
    return guard


def _pack_standing(
    target: Target | None, standing: Standing, digests: Digests, names: Names
) -> list[Any]:
    covers = None
    if target is not None:
        signature = None if target.signature is None else fold(target.signature, digests)
        exclude = [fold(signature, digests) for signature in target.exclude]
        covers = [signature, names.add(target.tool), exclude]
    return [
        covers,
        standing.detector,
        standing.count,
        standing.threshold,
        fold(standing.key, digests),
        names.add(standing.tool),
        names.add(standing.paired_tool),
    ]


def _unpack_standing(
    packed: list[Any], digests: list[str], names: list[str]
) -> tuple[Target, Standing]:
    covers, detector, count, threshold, key, tool, paired = packed
    target = Target()
    if covers is not None:
        signature, name, exclude = covers
        target = Target(
            None if signature is None else unfold(signature, digests),
            name_at(names, name),
            tuple(unfold(text, digests) for text in exclude),
        )
    standing = Standing(
        detector,
        count,
        threshold,
        unfold(key, digests),
        name_at(names, tool),
        name_at(names, paired),
    )
    return target, standing


# -- history -------------------------------------------------------------------------------


def _pack_history(history: History, digests: Digests, names: Names) -> list[Any]:
    """Columns: calls, results, then call and outcome of each record, offsets of the newest ones,
    each after the first as the difference to the one before; the rest is sparse.
    """
    calls: dict[str, int] = {}
    call_column: list[list[Any]] = []
    results: dict[str, int] = {}
    result_column: list[int] = []
    of_record: list[int] = []
    outcomes: list[int] = []
    offsets: list[int] = []
    rest: list[list[Any]] = []
    previous, first_kept = 0, len(history) - OFFSETS_KEPT
    for at, record in enumerate(history.records):
        call = record.call
        number = calls.get(call.signature)
        if number is None:
            number = calls[call.signature] = len(calls)
            digest = digests.add(call.signature[-64:])
            call_column.append([names.add(call.tool), digest, call.poll])
        of_record.append(number)
        outcomes.append(_outcome_index(record, results, result_column, digests))
        if at >= first_kept:
            offsets.append(record.offset - previous)
            previous = record.offset
        more = _more(record, digests, names)
        if more is not None:
            rest.append([at, *more])
    return [call_column, result_column, of_record, outcomes, offsets, rest]


def _outcome_index(
    record: Record, results: dict[str, int], column: list[int], digests: Digests
) -> int:
    result = record.result
    if result is None:
        return _VETOED if record.vetoed else _PENDING
    number = results.get(result)
    if number is None:
        number = results[result] = len(results)
        # The sign tells an error's digest from a result's.
        place = digests.add(result[-64:])
        column.append(place if len(result) == 64 else -1 - place)
    return number + _FIRST_RESULT


def _more(record: Record, digests: Digests, names: Names) -> list[Any] | None:
    """What only few records have; a call id is looked up only while its call is pending."""
    call_id = record.call_id if record.pending else None
    unknown, failure = record.unknown_tool, record.failure
    if call_id is None and unknown is None and failure is None and not record.no_progress:
        return None
    place = None if failure is None else digests.add(failure)
    return [call_id, names.add(unknown), record.no_progress, place]


def _unpack_history(packed: list[Any], digests: list[str], names: list[str]) -> History:
    call_column, result_column, of_record, outcomes, offsets, rest = packed
    calls = _unpack_calls(call_column, digests, names)
    results = _unpack_results(result_column, digests)
    records = _unpack_records(calls, results, of_record, outcomes, offsets)
    for at, call_id, unknown, no_progress, failure in rest:
        record = records[at]
        record.call_id = call_id
        record.unknown_tool = name_at(names, unknown)
        record.no_progress = no_progress
        record.failure = None if failure is None else digests[failure]
    return History.of(records)


def _unpack_calls(column: list[Any], digests: list[str], names: list[str]) -> list[Call]:
    calls: list[Call] = []
    for name, digest, poll in column:
        tool = names[name]
        calls.append(Call(tool, tool + ":" + digests[digest], poll))
    return calls


def _unpack_results(column: list[int], digests: list[str]) -> list[str]:
    return [digests[at] if at >= 0 else "error:" + digests[-1 - at] for at in column]


def _unpack_records(
    calls: list[Call],
    results: list[str],
    of_record: list[int],
    outcomes: list[int],
    offsets: list[int],
) -> list[Record]:
    if len(of_record) != len(outcomes):
        raise ValueError("columns of different lengths")
    records: list[Record] = []
    offset, unplaced = 0, len(of_record) - len(offsets)
    for at in range(len(of_record)):
        if at >= unplaced:
            offset += offsets[at - unplaced]
        record = Record(at, calls[of_record[at]], None, offset)
        outcome = outcomes[at]
        if outcome >= _FIRST_RESULT:
            record.result = results[outcome - _FIRST_RESULT]
        elif outcome == _VETOED:
            record.vetoed = True
        records.append(record)
    return records
