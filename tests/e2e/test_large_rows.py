"""The largest history that settings allow, of calls that share nothing: its row is kept."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from tests.e2e.house import House, wait_for
from tests.e2e.play import name

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]

SIZE = 10_000
BLOCKS = {"enabled": True, "historySize": SIZE}
MIB = 1024 * 1024


def digest(number: int, what: str) -> bytes:
    return hashlib.sha256(f"{what} {number}".encode()).digest()


def turn(run: str, number: int, call: int) -> list[dict[str, Any]]:
    """A call and what came of it, both of tools with the longest names."""
    common = {"v": 1, "run": run, "tool": f"{call:08}" + "é" * 60}
    fp = {"args": digest(call, "args")}
    out = {**fp, "result": digest(call, "result")}
    return [
        {**common, "type": "tool_call", "time": number, "fp": {"v": 1, "documented": fp}},
        {**common, "type": "tool_outcome", "time": number, "fp": {"v": 1, "documented": out}},
    ]


def test_a_row_of_megabytes_is_written_and_recovered(house: House) -> None:
    run = name()
    for begin in range(0, SIZE, 1000):
        calls = range(begin, begin + 1000)
        house.send_frame([event for n in calls for event in turn(run, n, n)])
    house.settle()
    wait_for("the row is written", lambda: house.largest_row() > MIB)
    assert house.workers[-1].stop() == 0, str(house.workers[-1])
    house.start()
    house.send_frame([event for n in range(10) for event in turn(run, SIZE + n, SIZE - 1)])
    assert [verdict.count for verdict in house.hear(run, 1)] == [10]
