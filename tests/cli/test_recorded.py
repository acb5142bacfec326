from __future__ import annotations

import gzip
import io
import json
from importlib.resources import files
from typing import Any

import pytest

from loopstream.cli.recorded import Publisher, read_runs, unique
from loopstream.errors import DataError
from loopstream.events import EVENT, ToolCall, ToolOutcome
from loopstream.fingerprint.calls import fingerprint_call
from loopstream.sdk.prints import Printer
from tests.conftest import SHARED

REAL = SHARED / "real" / "runs.jsonl.gz"
ARGS = {"command": "ls"}
STEPS: list[dict[str, Any]] = [
    {"op": "call", "tool": "exec", "args": ARGS, "call_id": "c1"},
    {"op": "outcome", "tool": "exec", "args": ARGS, "call_id": "c1", "result": "x", "dt": 1.5},
    {"op": "compaction"},
    {"op": "outcome", "tool": "exec", "args": ARGS, "error": None, "result": "x"},
]


def publisher(raw: bool = False, run_prefix: str = "", key: bytes | None = None) -> Publisher:
    printer = Printer(("documented",), key, None if key is None else "k1")
    return Publisher(printer, "tester", run_prefix, raw, 1_000)


def events(line: object, made: Publisher) -> list[Any]:
    stream = io.BytesIO(json.dumps(line).encode())
    (recorded,) = read_runs(stream, "f")
    return [EVENT.validate_python(fields) for fields in made.events(recorded)]


def test_a_run_is_begun_told_and_ended() -> None:
    told = events({"run": "r", "status": "failed", "events": STEPS}, publisher(run_prefix="p-"))
    assert [event.type for event in told] == [
        "run_started",
        "tool_call",
        "tool_outcome",
        "compaction",
        "tool_outcome",
        "run_ended",
    ]
    assert {event.run for event in told} == {"p-r"}
    assert {event.agent for event in told} == {"tester"}
    assert [event.seq for event in told] == [0, 1, 2, 3, 4, 5]
    assert [event.time for event in told] == [1000, 1000, 2500, 2500, 2500, 2500]
    assert len({event.id for event in told}) == 6
    assert told[3].retried
    assert told[5].status == "failed"


def test_fingerprints_leave_no_value_behind() -> None:
    told = events({"run": "r", "events": STEPS}, publisher())
    call = told[1]
    assert isinstance(call, ToolCall)
    assert call.args is None
    assert call.fp is not None
    assert call.fp.documented is not None
    assert call.fp.documented.args == fingerprint_call("exec", ARGS).args
    failed = told[4]
    assert failed.fp.documented.failed


def test_with_a_key_the_fingerprints_are_keyed() -> None:
    plain = events({"run": "r", "events": STEPS}, publisher())
    keyed = events({"run": "r", "events": STEPS}, publisher(key=b"secret"))
    assert keyed[1].fp.key_id == "k1"
    assert keyed[1].fp.documented.args != plain[1].fp.documented.args


def test_raw_values_travel_as_json_text_and_null_is_a_value() -> None:
    told = events({"run": "r", "events": STEPS}, publisher(raw=True))
    assert told[1].fp is None
    assert told[1].args == '{"command":"ls"}'
    assert isinstance(told[2], ToolOutcome)
    assert (told[2].result, told[2].error) == ('"x"', None)
    assert (told[4].result, told[4].error) == (None, "null")


def test_a_value_over_the_bound_travels_as_a_digest() -> None:
    steps = [{"op": "call", "tool": "write", "args": {"text": "x" * 300_000}}]
    for raw in (False, True):
        call = events({"run": "r", "events": steps}, publisher(raw=raw))[1]
        assert call.oversize
        assert call.args is None
        assert call.fp is not None


@pytest.mark.parametrize(
    ("line", "where"),
    [
        ("not json", "f:1"),
        ("[1]", "f:1"),
        ('{"events": []}', "f:1"),
        ('{"run": " ", "events": []}', "f:1"),
        ('{"run": "r", "events": {}}', "f:1"),
        ('{"run": "r", "events": [], "status": "odd"}', "f:1"),
        ('{"run": "r", "events": [{"op": "call", "tool": "x", "args": NaN}]}', "f:1"),
        ('{"run": "r", "events": [1]}', "f:1 step 1"),
        ('{"run": "r", "events": [{"op": "odd"}]}', "f:1 step 1"),
        ('{"run": "r", "events": [{"op": "call"}]}', "f:1 step 1"),
        ('{"run": "r", "events": [{"op": "compaction", "dt": -1}]}', "f:1 step 1"),
        ('{"run": "r", "events": [{"op": "compaction", "dt": true}]}', "f:1 step 1"),
    ],
)
def test_a_malformed_line_is_named(line: str, where: str) -> None:
    def read() -> None:
        for recorded in read_runs(io.BytesIO(line.encode()), "f"):
            list(publisher().events(recorded))

    with pytest.raises(DataError) as caught:
        read()
    assert caught.value.where == where


def test_a_broken_archive_is_named() -> None:
    whole = gzip.compress(b'{"run": "r", "events": []}\n' * 100)
    with pytest.raises(DataError, match=r"can't be read"):
        list(read_runs(io.BytesIO(whole[:-20]), "f"))


def test_the_real_runs_are_all_read() -> None:
    with REAL.open("rb") as stream:
        runs = list(read_runs(stream, REAL.name))
    assert len(runs) == 127
    calls = sum(step["op"] == "call" for run in runs for step in run.steps)
    assert calls == 940


@pytest.mark.parametrize("sample", ["healthy", "loop"])
def test_the_samples_are_recorded_runs(sample: str) -> None:
    data = (files("loopstream.samples") / f"{sample}.jsonl").read_bytes()
    runs = list(read_runs(io.BytesIO(data), sample))
    assert runs
    for recorded in runs:
        assert len(list(publisher().events(recorded))) == len(recorded.steps) + 2


def test_two_recordings_under_one_id_do_not_mix() -> None:
    with REAL.open("rb") as stream:
        names = [recorded.run for recorded in unique(read_runs(stream, REAL.name))]
    assert len(set(names)) == 127
    assert "issue#2" in names
