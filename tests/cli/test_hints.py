"""A command in a hint goes where the present command went."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.main import get_command

from loopstream.cli import hints
from loopstream.cli.app import app
from loopstream.cli.console import complain
from loopstream.cli.hints import GIVEN, completed, given
from loopstream.errors import TopicsError
from tests.cli.conftest import Cli

ROOT = Path(__file__).resolve().parents[2] / "loopstream"


@pytest.fixture(autouse=True)
def nothing_given() -> Iterator[None]:
    token = GIVEN.set(())
    yield
    GIVEN.reset(token)


def test_it_carries_what_the_command_line_said(capsys: pytest.CaptureFixture[str]) -> None:
    given("kafka:9092", "acme", Path("my file.toml"))
    complain(TopicsError("no.", hint="Create the topics with: loopstream topics create"))
    assert capsys.readouterr().err.splitlines()[1] == (
        "  Create the topics with: loopstream topics create "
        "--bootstrap kafka:9092 --prefix acme --config 'my file.toml'"
    )


def test_without_options_a_hint_is_as_it_was_written() -> None:
    given(None, None)
    assert completed("Run: loopstream topics create") == "Run: loopstream topics create"


def test_commands_that_ask_no_broker_stay_as_they_are() -> None:
    given(None, "acme")
    for hint in ("start one with: loopstream broker", "Issue one with `loopstream keys issue X`."):
        assert completed(hint) == hint
    assert completed("see `loopstream runs list`.") == "see `loopstream runs list --prefix acme`."


@pytest.mark.parametrize(
    "verb", re.findall(r"[a-z]+(?: [a-z]+)?", "topics create, topics show, runs list, worker")
)
def test_every_completed_command_takes_the_options(verb: str) -> None:
    given("kafka:9092", "acme")
    words = shlex.split(completed(f"loopstream {verb}"))
    assert words[-4:] == ["--bootstrap", "kafka:9092", "--prefix", "acme"]
    command = get_command(app)
    for word in verb.split():
        assert isinstance(command, typer.core.TyperGroup)
        command = command.commands[word]
    options = {option for parameter in command.params for option in parameter.opts}
    assert {"--bootstrap", "--prefix"} <= options


def test_no_hint_of_a_command_ends_in_a_full_stop_of_its_own() -> None:
    """What is copied from a hint must run: a sentence's end is no part of a command."""
    for file in ROOT.rglob("*.py"):
        found = re.findall(r"hint=f?\"[^\"]*: loopstream [a-z -]+\.\"", file.read_text())
        assert not found, file


def test_a_command_line_forgets_the_one_before(cli: Cli) -> None:
    cli("acls", "--prefix", "acme")
    assert hints.GIVEN.get() == ("--prefix", "acme")
    cli("--version")
    assert hints.GIVEN.get() == ()


def test_doctor_names_the_address_and_where_to_go(cli: Cli) -> None:
    said = cli("doctor", "-o", "ndjson", "--bootstrap", "127.0.0.1:1", "--set", "timeout_s=1")
    assert said.rows[-1]["detail"].startswith("127.0.0.1:1: ")
