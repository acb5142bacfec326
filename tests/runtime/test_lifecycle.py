from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from loopstream.config.logs import LIFECYCLE
from loopstream.runtime.lifecycle import AWAY_S, Lifecycle, connected, spans


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def told(clock: Clock, caplog: pytest.LogCaptureFixture) -> Lifecycle:
    caplog.set_level(logging.INFO, LIFECYCLE)
    return Lifecycle("acme.events", "kafka:9092", clock)


def test_it_says_once_that_it_is_ready_and_once_that_it_stopped(
    told: Lifecycle, caplog: pytest.LogCaptureFixture
) -> None:
    told.look(None, connected=True)
    assert caplog.messages == []
    for _ in range(3):
        told.look([2, 0, 1, 5], connected=True)
    told.look(None, connected=True)
    told.look([0, 1, 2, 5], connected=True)
    told.stopped()
    assert caplog.messages == [
        "ready: partitions 0-2, 5 of acme.events",
        "stopped: all that was judged of acme.events is committed",
    ]


def test_other_partitions_are_told_anew(told: Lifecycle, caplog: pytest.LogCaptureFixture) -> None:
    told.look([0], connected=True)
    told.look([], connected=True)
    assert caplog.messages[1] == "ready: other workers have all partitions of acme.events"


def test_a_worker_that_was_never_ready_did_not_stop_in_order(
    told: Lifecycle, caplog: pytest.LogCaptureFixture
) -> None:
    told.stopped()
    assert caplog.messages == []


def test_kafka_away_is_told_once_and_so_is_its_return(
    told: Lifecycle, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    told.look([0], connected=True)
    for _ in range(30):
        clock.now += 1.0
        told.look([0], connected=False)
    clock.now += 1.0
    told.look([0], connected=True)
    away, back = caplog.messages[1:]
    assert "does not answer (kafka:9092)" in away
    assert "answers again (kafka:9092), after 31 s" in back
    assert caplog.records[1].levelno == logging.ERROR


def test_a_gap_between_two_connections_is_nothing(
    told: Lifecycle, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for at_hand in (True, False, True, False, True):
        told.look(None, connected=at_hand)
        clock.now += AWAY_S / 2
    assert caplog.messages == []


def consumer(*states: bool) -> SimpleNamespace:
    held = {at: SimpleNamespace(connected=lambda up=up: up) for at, up in enumerate(states)}
    client = SimpleNamespace(_conns=held)
    return SimpleNamespace(_thread=SimpleNamespace(_consumer=SimpleNamespace(_client=client)))


def test_one_connection_is_enough() -> None:
    assert connected(consumer(False, True))
    assert not connected(consumer(False, False))
    assert not connected(consumer())


def test_what_can_not_be_known_is_no_alarm() -> None:
    assert connected(SimpleNamespace())


def test_spans() -> None:
    assert spans([]) == ""
    assert spans([3]) == "3"
    assert spans([0, 1, 2, 4, 6, 7]) == "0-2, 4, 6-7"
