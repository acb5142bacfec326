from __future__ import annotations

import re
import stat
from pathlib import Path

import pytest

from loopstream.cli.keys import _dated
from loopstream.sdk.options import issued_keys
from loopstream.wire.keys import MasterKey, key_line, read_master_keys
from tests.cli.conftest import Cli

FILE = Path("signing.keys")


def held() -> tuple[MasterKey, ...]:
    return read_master_keys(FILE.read_bytes(), "file")


def test_new_keys_are_random_and_stand_last(cli: Cli) -> None:
    said = cli("keys", "new", FILE)
    assert (said.code, said.out) == (0, "")
    assert re.search(r"the key \d{4}-\d\d-\d\d signs", said.err)
    (first,) = held()
    said = cli("keys", "new", FILE, "--id", "second")
    assert "second verifies" in said.err
    assert [key.id for key in held()] == [first.id, "second"]
    assert len({key.secret for key in held()}) == 2
    assert held()[0] == first
    assert first.secret.hex() not in said.err
    assert stat.S_IMODE(FILE.stat().st_mode) == 0o600
    assert list(Path().iterdir()) == [FILE]


def test_a_file_of_one_bare_key_becomes_one_of_lines(cli: Cli) -> None:
    FILE.write_bytes(b"\xff" * 32 + b"\n")
    (before,) = held()
    assert cli("keys", "new", FILE).code == 0
    assert held()[0] == before


def test_ids_are_not_given_twice(cli: Cli) -> None:
    assert cli("keys", "new", FILE, "--id", "a").code == 0
    assert cli("keys", "new", FILE, "--id", "a").code == 2
    assert cli("keys", "new", FILE, "--id", "a b").code == 2
    assert [key.id for key in held()] == ["a"]
    days = [_dated(())]
    for _ in range(3):
        days.append(_dated(MasterKey(day, b"") for day in days))
    assert days == [days[0], *(f"{days[0]}-{number}" for number in (2, 3, 4))]


def test_a_broken_file_is_left_alone(cli: Cli) -> None:
    FILE.write_text("a:xyz\n")
    assert cli("keys", "new", FILE).code == 3
    assert FILE.read_text() == "a:xyz\n"
    assert cli("keys", "new", "no/such/folder").code == 2


def test_what_a_runner_is_issued(cli: Cli) -> None:
    keys = MasterKey("a", b"a" * 32), MasterKey("b", b"b" * 40)
    FILE.write_text("\n".join(map(key_line, keys)))
    at = ("--set", f"signing.file={FILE}")
    said = cli("keys", "issue", "r-7", *at)
    assert said.code == 0
    assert issued_keys(said.out) == tuple(key.issue("r-7") for key in keys)
    out = Path("r-7.key")
    said = cli("keys", "issue", "r-7", "--key-id", "b", "--key-id", "a", "--out", out, *at)
    assert (said.code, said.out) == (0, "")
    assert issued_keys(out) == tuple(key.issue("r-7") for key in reversed(keys))
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    for key in keys:
        assert key.issue("r-7").secret.hex() not in said.err


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (("r",), 3, "no master key"),
        (("r", "--set", "signing.file=none"), 3, "can't be read"),
        (("r", "--set", f"signing.secret={'s' * 40}", "--key-id", "x"), 2, "no key x"),
        ((" ", "--set", f"signing.secret={'s' * 40}"), 2, "has an id"),
    ],
)
def test_what_can_not_be_issued(cli: Cli, arguments: tuple[str, ...], code: int, why: str) -> None:
    said = cli("keys", "issue", *arguments)
    assert (said.code, said.out) == (code, "")
    assert why in said.err


@pytest.mark.parametrize(("mode", "told"), [(0o600, False), (0o640, True), (0o604, True)])
def test_master_keys_that_others_can_read_are_told(
    cli: Cli, tmp_path: Path, mode: int, told: bool
) -> None:
    file = tmp_path / "signing.keys"
    assert cli("keys", "new", file).code == 0
    file.chmod(mode)
    said = cli("keys", "issue", "runner-7", "--set", f"signing.file={file}")
    assert said.code == 0
    assert ("chmod 600" in said.err) is told
