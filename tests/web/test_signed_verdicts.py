"""Where workers sign, the dashboard shows what they signed, and counts what they did not."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from loopstream.config import load
from loopstream.errors import SettingsError
from loopstream.policy.deployment import Deployment
from loopstream.runtime.topics import Topics
from loopstream.web.archive import Archive
from loopstream.web.board import Board, Passed
from loopstream.web.records import news_of
from loopstream.web.ring import Said
from loopstream.wire.keys import MasterKey
from loopstream.wire.signing import Headers, verdict_headers
from loopstream.wire.verdicts import encode_model
from tests.web.test_memory import verdict

NEW, OLD = MasterKey("new", b"n" * 32), MasterKey("old", b"o" * 32)
TOPICS = Topics("p")
VALUE = encode_model(verdict(1, runner="robot"))


@dataclass
class Record:
    headers: Headers = field(default_factory=list)
    value: bytes = VALUE
    topic: str = TOPICS.verdicts
    partition: int = 0
    offset: int = 0


@pytest.mark.parametrize("key", [NEW, OLD], ids=lambda key: key.id)
def test_what_a_worker_signed_is_shown(key: MasterKey) -> None:
    record = Record(verdict_headers(key.issue("robot"), "r", VALUE))
    assert isinstance(news_of(record, TOPICS, (NEW, OLD)), Said)


def test_a_verdict_on_nobodys_run_is_signed_too() -> None:
    value = encode_model(verdict(1))
    record = Record(verdict_headers(NEW.issue(""), "r", value), value)
    assert isinstance(news_of(record, TOPICS, (NEW,)), Said)


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param([], id="unsigned"),
        pytest.param(verdict_headers(NEW.issue("other"), "r", VALUE), id="of another runner"),
        pytest.param(verdict_headers(NEW.issue("robot"), "s", VALUE), id="of another run"),
        pytest.param(verdict_headers(OLD.issue("robot"), "r", VALUE), id="with an unknown key"),
    ],
)
def test_what_no_worker_signed_is_counted_and_left_out(headers: Headers) -> None:
    board = Board(Deployment("p"))
    board.begin([0])
    found = news_of(Record(headers), TOPICS, (NEW,))
    assert found == Passed(0, 0, unsigned=True)
    board.take([found, Passed(0, 1)])
    assert (board.unsigned, board.undecodable) == (1, 1)
    assert list(board.ring.newest()) == []


def test_without_keys_any_verdict_is_shown() -> None:
    assert isinstance(news_of(Record(), TOPICS), Said)


def test_keys_that_can_not_be_read_are_told_at_once() -> None:
    with pytest.raises(SettingsError, match="can't be read"):
        Archive(load({"signing.file": "none"}).settings)
