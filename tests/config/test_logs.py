from __future__ import annotations

import json
import logging
import logging.config
from collections.abc import Iterator

import pytest

from loopstream.config.logs import logging_config


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
