from __future__ import annotations

import json
import logging
import logging.config
from collections.abc import Iterator

import pytest

from loopstream.config.logs import LIFECYCLE, Repeats, logging_config


@pytest.fixture(autouse=True)
def root_as_before() -> Iterator[None]:
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    logging.root.handlers[:], logging.root.level = handlers, level


def test_json_lines_hold_what_happened_where_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    logging.config.dictConfig(logging_config("INFO", "json"))
    log = logging.getLogger("a.b")
    log.debug("below the level")
    log.warning("took %d", 3)
    try:
        int("why")
    except ValueError:
        log.exception("failed")
    out, err = capsys.readouterr()
    first, second = (json.loads(line) for line in err.splitlines())
    assert out == ""
    assert (first["event"], first["level"], first["logger"]) == ("took 3", "warning", "a.b")
    assert first["timestamp"].endswith("Z")
    assert "ValueError: invalid literal" in second["exception"]


def test_text_lines_are_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    logging.config.dictConfig(logging_config("WARNING", "text"))
    logging.getLogger("a.b").info("below the level")
    logging.getLogger("a.b").error("took %d", 3)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith("ERROR   a.b: took 3\n")
    assert len(err.splitlines()) == 1


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def shown(repeats: Repeats, name: str, text: str, *args: object) -> str | None:
    record = logging.LogRecord(name, logging.ERROR, "", 0, text, args, None)
    return f"{record.levelname} {record.getMessage()}" if repeats.filter(record) else None


def test_a_hundred_lines_a_second_of_a_library_are_one_in_ten_seconds() -> None:
    clock = Clock()
    repeats = Repeats(clock)
    lines = []
    for at in range(3000):
        clock.now = at / 100
        lines.append(shown(repeats, "aiokafka", "Unable connect to node with id %s: away", at % 3))
    told = [line for line in lines if line]
    assert told == [
        "ERROR Unable connect to node with id 0: away",
        "ERROR Unable connect to node with id 1: away (and 999 more like it)",
        "ERROR Unable connect to node with id 2: away (and 999 more like it)",
    ]


def test_kinds_of_lines_do_not_hide_each_other_and_ours_are_never_hidden() -> None:
    repeats = Repeats(Clock())
    assert shown(repeats, "aiokafka.client", "one")
    assert shown(repeats, "aiokafka.client", "other")
    assert shown(repeats, "aiokafka.conn", "one")
    assert shown(repeats, "aiokafka.client", "one") is None
    assert all(shown(repeats, "loopstream.worker", "one") for _ in range(3))


def test_strangers_can_not_fill_the_memory_with_kinds() -> None:
    repeats = Repeats(Clock())
    for at in range(2000):
        shown(repeats, f"kafka.{at}", "a line")
    assert len(repeats._kinds) <= 256


def test_a_fresh_broker_s_missing_coordinator_is_told_only_when_it_stays_away() -> None:
    clock = Clock()
    repeats = Repeats(clock)
    name, text = "aiokafka.consumer.group_coordinator", "Group Coordinator Request failed: %s"
    error = "[Error 15] GroupCoordinatorNotAvailableError"
    lines = []
    for clock.now in range(40):
        lines.append(shown(repeats, name, text, error))
    assert lines[:30] == [None] * 30
    told = [line for line in lines if line]
    assert told == [f"WARNING Group Coordinator Request failed: {error} (and 30 more like it)"]
    assert shown(repeats, name, text, "[Error 30] GroupAuthorizationFailedError")


@pytest.mark.parametrize("level", ["DEBUG", "INFO", "WARNING", "ERROR"])
def test_ready_and_stopped_are_shown_unless_errors_alone_are_wanted(
    capsys: pytest.CaptureFixture[str], level: str
) -> None:
    logging.config.dictConfig(logging_config(level, "text"))
    logging.getLogger(LIFECYCLE).info("ready")
    assert ("ready" in capsys.readouterr().err) is (level != "ERROR")
