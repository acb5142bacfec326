"""Monotone merge and seals: what recovery keeps, and how it knows that it has everything."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopstream.errors import CorruptStateError
from loopstream.partition import row_position
from loopstream.runtime.fold import RESERVED
from loopstream.runtime.rows import POSITION_HEADER, MemoryRows, Merge, follows
from loopstream.runtime.seal import SEAL_KEY, Seal, check_seal, pack_seal, unpack_seal


@dataclass
class Record:
    offset: int
    key: bytes
    value: bytes | None
    headers: list[tuple[str, bytes]] = field(default_factory=list)


def row(last_offset: int, content: str = "") -> bytes:
    return bytes(msgpack.packb([1, 0, last_offset, 0, None, content]))


def merged(*records: Record) -> tuple[MemoryRows, Merge]:
    rows = MemoryRows()
    merge = Merge(rows, row_position)
    merge.apply(records)
    return rows, merge


def test_a_zombies_older_row_does_not_win_and_the_better_one_is_asserted_again() -> None:
    # Faust's own store takes the newest record: one run lost 1,286 verdicts (CHECKPOINTS.md).
    rows, merge = merged(Record(0, b"r", row(200)), Record(1, b"r", row(30)))
    assert rows.get(b"r") == row(200)
    assert merge.better == {b"r"}


def test_the_owners_next_row_settles_it() -> None:
    rows, merge = merged(
        Record(0, b"r", row(200)), Record(1, b"r", row(30)), Record(2, b"r", row(201))
    )
    assert rows.get(b"r") == row(201)
    assert merge.better == set()


def test_a_late_tombstone_does_not_erase_a_run_that_came_back() -> None:
    late = Record(1, b"r", None, [(POSITION_HEADER, b"30")])
    rows, merge = merged(Record(0, b"r", row(200)), late)
    assert rows.get(b"r") == row(200)
    assert merge.better == {b"r"}


def test_tombstones_of_the_owner_and_of_an_operator_erase() -> None:
    ours = Record(2, b"a", None, [(POSITION_HEADER, b"200")])
    theirs = Record(3, b"b", None)
    rows, merge = merged(Record(0, b"a", row(200)), Record(1, b"b", row(200)), ours, theirs)
    assert list(rows) == []
    assert rows.count == 0
    assert merge.better == set()


@given(
    st.lists(st.tuples(st.sampled_from(b"abc"), st.integers(0, 50)), max_size=40),
    st.lists(st.integers(1, 5), max_size=20),
)
def test_any_split_into_batches_keeps_the_highest_row(
    writes: list[tuple[int, int]], sizes: list[int]
) -> None:
    rows = MemoryRows()
    merge = Merge(rows, row_position)
    records = [Record(at, bytes([k]), row(offset)) for at, (k, offset) in enumerate(writes)]
    rest = list(records)
    for size in [*sizes, len(rest)]:
        merge.apply(rest[:size])
        rest = rest[size:]
    best: dict[bytes, int] = {}
    for key, offset in writes:
        best[bytes([key])] = max(best.get(bytes([key]), -1), offset)
    assert {key: row_position(rows.get(key) or b"")[1] for key in rows} == best
    assert rows.count == len(best)
    assert rows.applied == (len(records) - 1 if records else None)


OFFSETS = st.integers(0, 2**63 - 1) | st.integers(0, 300) | st.integers(65_000, 66_000)


def long_row(partition: int, last_offset: int, content: str) -> bytes:
    return bytes(msgpack.packb([1, partition, last_offset, 0, None, *[0] * 12, content]))


@pytest.mark.parametrize("fields", ["few", "many"])
@given(st.sampled_from([0, 1, 127, 128, 255, 256, 70_000]), OFFSETS, OFFSETS, st.text(max_size=2))
def test_bytes_never_call_an_older_row_newer(
    fields: str, partition: int, one: int, other: int, content: str
) -> None:
    def packed(offset: int) -> bytes:
        if fields == "many":
            return long_row(partition, offset, content)
        return bytes(msgpack.packb([1, partition, offset, 0, content]))

    if follows(packed(one), packed(other)):
        assert one >= other
    assert follows(long_row(partition, one, ""), long_row(partition, other, "")) == (one >= other)


def test_rows_of_two_layouts_are_looked_at_closely() -> None:
    assert not follows(long_row(0, 9, ""), row(5))
    assert not follows(row(9), long_row(0, 5, ""))
    rows, merge = merged(Record(0, b"r", long_row(0, 9, "")), Record(1, b"r", row(5)))
    assert rows.get(b"r") == long_row(0, 9, "")
    assert merge.better == {b"r"}


@pytest.mark.parametrize("partition", [0, 200])
def test_a_late_row_from_before_the_first_event_does_not_win(partition: int) -> None:
    # A zombie's first marker: its offset is -1, in msgpack the greatest of all bytes.
    key = RESERVED + b"marker"
    first, kept = long_row(partition, -1, ""), long_row(partition, 5, "")
    rows, merge = merged(Record(0, key, kept), Record(1, key, first))
    assert rows.get(key) == kept
    assert merge.better == {key}


def test_a_seal_reads_back_and_has_the_head_of_a_row() -> None:
    seal = Seal(partition=3, last_offset=41, rows=7, generation=5)
    assert unpack_seal(pack_seal(seal)) == seal
    assert row_position(pack_seal(seal)) == (3, 41)
    assert SEAL_KEY.startswith(b"\xff")


def checked(seal: Seal | None, rows: int, committed: int | None) -> Any:
    return check_seal(0, None if seal is None else pack_seal(seal), rows, committed)


def test_complete_rows_pass() -> None:
    seal = Seal(0, last_offset=99, rows=10, generation=1)
    assert checked(seal, rows=10, committed=100) == seal
    assert checked(seal, rows=12, committed=50) == seal
    assert checked(None, rows=0, committed=None) is None


@pytest.mark.parametrize(
    ("seal", "rows", "committed"),
    [
        pytest.param(None, 10, 100, id="no seal"),
        pytest.param(Seal(0, 98, 10, 1), 10, 100, id="seal behind the commit"),
        pytest.param(Seal(0, 99, 10, 1), 9, 100, id="a row is missing"),
        pytest.param(Seal(0, 99, 10, 1), 9, None, id="a row is missing, nothing committed"),
    ],
)
def test_incomplete_rows_are_refused(seal: Seal | None, rows: int, committed: int | None) -> None:
    with pytest.raises(CorruptStateError, match="changelog partition 0"):
        checked(seal, rows, committed)


NEWER = msgpack.packb([2, 0, 0, 0, None, 0, 0])


@pytest.mark.parametrize("junk", [b"", b"\x01", b"\xff" * 9, NEWER])
def test_junk_is_no_seal(junk: bytes) -> None:
    with pytest.raises(CorruptStateError):
        unpack_seal(junk)
