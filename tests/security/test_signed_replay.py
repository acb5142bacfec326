"""Replay begins with the pin that a worker wrote, not with one that a runner left there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from loopstream.partition.marker import policy_text
from loopstream.policy.deployment import Deployment
from loopstream.replay.controls import ReplaySources
from loopstream.replay.opening import Opening, controls_in, find_opening
from loopstream.replay.records import Bounds, FileRecord
from loopstream.wire.keys import MasterKey
from loopstream.wire.signing import Headers, Verifier, own_headers, record_headers
from tests.partition.driver import Fields, SourceRecord, control_of, frame

KEY = MasterKey("k", b"k" * 32)
REQUIRED, VERIFY = Verifier((KEY,)), Verifier((KEY,), required=False)
REAL = Deployment("p", profile="extended")
LIE = replace(REAL, profile="documented", idle_ms=1)
CONTROL = control_of(SourceRecord(0, "*", b'{"enabled":true}'), "config")


@dataclass
class Log:
    """A partition in memory."""

    records: list[FileRecord] = field(default_factory=list)
    name: str = "p.events"

    def add(self, event: Fields, headers: Headers | None = None) -> Log:
        value = frame([event])
        told = own_headers((KEY,), value) if headers is None else headers
        self.records.append(FileRecord(0, len(self.records), 0, None, value, told))
        return self

    def pins(self) -> None:
        """They are to be looked for."""

    def batches(self, spans: Mapping[int, Any]) -> Iterator[Sequence[FileRecord]]:
        assert list(spans) == [0]
        yield self.records


def pin(deployment: Deployment) -> Fields:
    fields = {"v": 1, "type": "pin", "time": 0, "config_offset": -1, "commands_offset": -1}
    return {**fields, "settings": {}, "policy": policy_text(deployment)}


def by_runner(event: Fields) -> Headers:
    return record_headers(KEY.issue("mallory"), "mallory", frame([event]))


def opening(log: Log, verifier: Verifier | None) -> Opening:
    sources = ReplaySources({"config": {}, "commands": {}})
    told = Deployment("p", profile="reference-2026-9")
    bounds = Bounds(0, len(log.records))
    return find_opening(log, 0, bounds, sources, told, verifier)  # type: ignore[arg-type]


def test_without_signatures_the_first_pin_that_does_not_contradict_the_topic_is_taken() -> None:
    log = Log().add(pin(LIE), []).add(pin(REAL))
    assert opening(log, None).deployment == LIE


@pytest.mark.parametrize("verifier", [REQUIRED, VERIFY], ids=["required", "verify"])
def test_a_runners_pin_is_passed_over(verifier: Verifier) -> None:
    log = Log().add(pin(LIE), by_runner(pin(LIE))).add(pin(REAL))
    assert opening(log, verifier).deployment == REAL


def test_an_unsigned_pin_is_passed_over_where_signatures_are_required() -> None:
    log = Log().add(pin(LIE), []).add(pin(REAL))
    assert opening(log, REQUIRED).deployment == REAL
    assert opening(log, VERIFY).deployment == LIE, "it may be from before workers signed"


def test_where_no_worker_signed_one_it_is_made_up_and_said() -> None:
    found = opening(Log().add(pin(LIE), []), REQUIRED)
    assert found.deployment.profile == "reference-2026-9"
    assert "no worker signed it" in (found.note or "")


@pytest.mark.parametrize(
    ("headers", "verifier", "taken"),
    [
        pytest.param(None, REQUIRED, True, id="signed by a worker"),
        pytest.param(by_runner(CONTROL), REQUIRED, False, id="signed by a runner"),
        pytest.param(by_runner(CONTROL), VERIFY, False, id="signed by a runner, checked"),
        pytest.param([], REQUIRED, False, id="unsigned"),
        pytest.param([], VERIFY, True, id="unsigned, where that is allowed"),
        pytest.param([], None, True, id="unsigned, unchecked"),
    ],
)
def test_only_workers_controls_are_noted(
    headers: Headers | None, verifier: Verifier | None, taken: bool
) -> None:
    (record,) = Log().add(CONTROL, headers).records
    assert bool(controls_in(record, verifier)) is taken
