"""Orders from the command line, carried out by a worker."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopstream.sdk import Run, RunAborted
from tests.cli.conftest import Cli
from tests.e2e.house import House, open_house, wait_for
from tests.e2e.play import name, turns

ENDED = ["aborted", "abort", "By Ada: it is back"]
pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]


@pytest.fixture
def house(bootstrap: str, prefix: str, tmp_path: Path) -> Iterator[House]:
    blocks = {"tools": {"loopDetection": {"enabled": True}}}
    with open_house(bootstrap, prefix, tmp_path, blocks=blocks) as opened:
        yield opened


def test_without_kafka_the_command_line_is_checked(cli: Cli) -> None:
    for arguments in (
        ("runs", "abort", "--reason", "x"),
        ("runs", "abort", "r", "--agent", "a", "--reason", "x"),
        ("runs", "release", "r", "--reason", " "),
        ("runs", "release", "r", "--reason", "x", "--by", " "),
        ("runs", "release", "r"),
    ):
        assert cli(*arguments).code == 2, arguments


def test_orders_are_carried_out_and_confirmed(on_kafka: Cli, house: House) -> None:
    run_id, other = name(), name()
    words = ("--reason", "it is back", "--by", "Ada")
    assert on_kafka("runs", "release", "nobody", *words).code == 2
    with house.runner("coder") as runner:
        run, second = runner.run(run_id), runner.run(other)
        turns(run, 20)
        turns(second, 3, args={"command": "pwd"})
        house.settle()
        wait_for("both are known", lambda: len(on_kafka("runs", "list", "-o", "ndjson").rows) >= 2)
        said = on_kafka("runs", "release", run_id, *words)
        assert said.code == 0, said.err
        assert said.out == f"{run_id}: release of generic_repeat. By Ada: it is back\n"
        again = on_kafka("runs", "release", run_id, *words, "--wait", "1")
        assert again.code == 1
        assert "either nothing was refused any more" in again.err

        said = on_kafka("runs", "abort", run_id, *words, "-o", "ndjson")
        assert [(row["action"], row["evidence"]["by"]) for row in said.rows] == [("abort", "Ada")]
        written = on_kafka("runs", "abort", "--agent", "coder", *words, "--wait", "0")
        assert written.code == 0
        assert "all runs of coder" in written.err
        with pytest.raises(RunAborted, match="By Ada: it is back"):
            calls_until_aborted(second)
    house.settle()
    ended = [ENDED, ENDED]
    wait_for(
        "the records say who and why",
        lambda: [shown(on_kafka, each) for each in (run_id, other)] == ended,
    )


def calls_until_aborted(run: Run) -> None:
    for number in range(600):
        turns(run, 1, args={"command": f"ls {number}"})
        time.sleep(0.1)


def shown(on_kafka: Cli, run: str) -> list[str]:
    (row,) = on_kafka("runs", "show", run, "-o", "json").json
    return [row["status"], row["action"], row["reason"]]
