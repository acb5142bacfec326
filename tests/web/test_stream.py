"""Server-sent events, message by message, without a network."""

from __future__ import annotations

import re

from loopstream.policy.deployment import Deployment
from loopstream.web.board import Board
from loopstream.web.choice import Choice
from loopstream.web.live import MAX_ROWS, Stream
from loopstream.web.ring import Ring, Said
from tests.web.test_memory import verdict


def board(*, most: int = 10_000) -> Board:
    made = Board(Deployment(prefix="p"))
    made.ring = Ring((0, 0), max_verdicts=most)
    return made


def said(number: int, partition: int, offset: int) -> Said:
    """News of a run of its own: equal blocks of one run would be one row."""
    run = f"run-{number}"
    return Said(verdict(number, run=run, scope=run), partition, offset, 100)


def ids(message: bytes) -> list[int]:
    return [int(found, 16) for found in re.findall(r'id="v-([0-9a-f]{32})"', message.decode())]


def test_a_fresh_stream_is_told_where_it_stands_and_the_figures() -> None:
    text = Stream(board(), Choice(), None).message().decode()
    assert text.startswith("id: 0.0\n\nevent: stats\ndata: {")


def test_news_is_told_once_the_newest_first_with_the_cursor() -> None:
    made = board()
    stream = Stream(made, Choice(), None)
    stream.message()
    made.take([said(1, 0, 0), said(2, 1, 0)])
    message = stream.message()
    assert ids(message) == [2, 1]
    assert message.startswith(b"id: 1.1\nevent: verdicts\ndata: ")
    assert b"event: verdicts" not in stream.message()


def test_what_is_filtered_out_still_moves_the_cursor() -> None:
    made = board()
    stream = Stream(made, Choice(agent="somebody else"), None)
    stream.message()
    made.take([said(1, 0, 0)])
    message = stream.message()
    assert ids(message) == []
    assert message.startswith(b"id: 1.0\n\n")


def test_who_comes_back_is_told_what_was_missed() -> None:
    made = board()
    made.take([said(number, 0, number) for number in range(5)])
    assert ids(Stream(made, Choice(), "3.0").message()) == [4, 3]
    assert ids(Stream(made, Choice(), "5.0").message()) == []


def test_who_comes_back_too_late_loads_the_list_again() -> None:
    made = board(most=2)
    made.take([said(number, 0, number) for number in range(5)])
    for cursor in ("2.0", "nonsense", "9.9"):
        message = Stream(made, Choice(), cursor).message()
        assert message.startswith(b"id: 5.0\nevent: resync\ndata: 1\n\n"), cursor


def test_who_is_too_slow_loads_the_list_again() -> None:
    made = board(most=3)
    stream = Stream(made, Choice(), None)
    stream.message()
    made.take([said(number, 0, number) for number in range(4)])
    assert b"event: resync" in stream.message()
    made.take([said(9, 0, 9)])
    assert ids(stream.message()) == [9]


def test_more_rows_than_a_page_shows_are_not_sent() -> None:
    made = board()
    stream = Stream(made, Choice(), None)
    stream.message()
    made.take([said(number, 0, number) for number in range(MAX_ROWS + 1)])
    message = stream.message()
    assert b"event: resync" in message
    assert len(message) < 10_000


def test_a_heartbeat_carries_the_cursor() -> None:
    made = board()
    stream = Stream(made, Choice(), None)
    stream.message()
    assert b"id:" not in stream.message()
    stream.beat()
    assert stream.message().startswith(b"id: 0.0\n\n")


def test_what_strangers_wrote_can_end_neither_a_row_nor_an_event() -> None:
    made = board()
    stream = Stream(made, Choice(), None)
    stream.message()
    reason = "a\n\nevent: evil\ndata: <script>hit()</script>\r\u2028\x00\x1b[31m"
    made.take([Said(verdict(1, reason=reason, tool="<b>"), 0, 0, 100)])
    text = stream.message().decode()
    (data,) = re.findall(r"event: verdicts\n((?:data: .*\n)+)\n", text)
    assert "<script>" not in data
    assert "<b>" not in data
    assert "a␊␊event: evil␊data: &lt;script&gt;" in data
    assert "␀␛[31m" in data
    assert text.count("\n\n") <= 2


def test_the_choice_takes_what_all_its_filters_take() -> None:
    one = verdict(1)
    assert Choice().takes(one)
    assert Choice(agent="a", tool="exec", detector="generic_repeat", action="block").takes(one)
    assert not Choice(action="warn").takes(one)
    assert not Choice(scope="other").takes(one)
    nothing = verdict(2, action="answer", level="none")
    assert not Choice().takes(nothing)
    assert Choice(action="answer").takes(nothing)
    assert Choice.of({"agent": " a ", "tool": "", "x": "y"}).query == "agent=a"
