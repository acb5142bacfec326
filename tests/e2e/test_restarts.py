"""A worker that goes and comes back goes on where it was: nothing lost, effects once."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import pytest

from loopstream.sdk import Block, Runner
from tests.e2e.house import House, actions, wait_for
from tests.e2e.oracle import assert_exact
from tests.e2e.play import LS, hears, name, sent, turn, turns

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]

BLOCKS = {"enabled": True}
# A dead worker's partitions are given to its heir that soon.
VALUES = {"worker.session_timeout_s": "6", "worker.checkpoint_max_interval_s": "0.5"}


def test_a_count_goes_on_over_a_stop_and_a_start(house: House) -> None:
    run_id = name()
    with house.runner("coder") as runner, runner.run(run_id) as run:
        turns(run, 12)
        sent(runner)
        house.settle()
        assert house.workers[-1].stop() == 0, str(house.workers[-1])
        turns(run, 3)
        sent(runner)
        house.start()
        turns(run, 5)
        hears(runner, 2)
        blocked = turn(run, "exec", LS)
        assert isinstance(blocked, Block)
        assert blocked.count == 20
    assert_exact(house)
    assert actions(house.verdicts(run_id)) == [
        ("warn", "generic_repeat", 10),
        *[("block", "generic_repeat", 20)] * 2,
    ]


def test_nothing_is_lost_or_doubled_over_kills_under_load(house: House) -> None:
    with house.runner("coder") as runner, load(runner) as runs:
        for _ in range(2):
            more_come(house)
            house.workers[-1].kill()
            house.start()
        more_come(house)
    assert_exact(house)
    assert runner.counters["events_dropped"] == 0
    finished = [run for run in runs if house.verdicts(run)]
    assert len(finished) > 10
    for run in finished:
        seqs = [verdict.seq for verdict in house.verdicts(run)]
        assert seqs == list(range(1, len(seqs) + 1)), run


def more_come(house: House) -> None:
    """Wait until the worker has said something new."""
    count = len(house.all_verdicts()) + 20
    wait_for("verdicts come", lambda: len(house.all_verdicts()) > count)


@contextlib.contextmanager
def load(runner: Runner) -> Iterator[list[str]]:
    """Agents that loop until they are refused, one generation after the other; their run ids."""
    ids: list[str] = []
    stop, troubles = threading.Event(), list[BaseException]()

    def work() -> None:
        try:
            while not stop.is_set():
                generation = [name() for _ in range(8)]
                ids.extend(generation)
                play(runner, generation, stop)
        except BaseException as error:  # noqa: BLE001 - told below
            troubles.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield ids
    finally:
        stop.set()
        thread.join()
    assert not troubles, troubles


def play(runner: Runner, ids: list[str], stop: threading.Event) -> None:
    """Turn by turn until they are refused, or it is time to stop."""
    runs = going_on = [runner.run(run_id) for run_id in ids]
    while going_on and not stop.wait(0.05):
        going_on = [run for run in going_on if turn(run, "exec", LS, result="same").allowed]
    for run in runs:
        run.end()
