"""Keys: how they are derived, how they are written, and that none of them is ever shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from loopstream.config import load
from loopstream.errors import SettingsError
from loopstream.sdk.options import Options, issued_keys
from loopstream.wire.keys import (
    MAX_KEYS,
    IssuedKey,
    MasterKey,
    key_line,
    read_issued_keys,
    read_master_keys,
)

SECRET = b"m" * 32
MASTER = MasterKey("new", SECRET)
OLD = MasterKey("old", b"o" * 40)


def hkdf(secret: bytes, info: bytes) -> bytes:
    return HKDF(SHA256(), 32, salt=None, info=info).derive(secret)


def test_keys_are_those_of_the_hkdf_of_rfc_5869() -> None:
    issued = MASTER.issue("é")
    assert issued == IssuedKey("new", hkdf(SECRET, b"loopstream runner 1\0" + "é".encode()))
    assert issued.run_key("run") == hkdf(issued.secret, b"loopstream run 1\0run")
    assert MASTER.worker().secret == hkdf(SECRET, b"loopstream worker 1\0")


def test_no_runner_has_the_key_of_the_workers() -> None:
    names = ["", "\0", "worker", "loopstream worker 1\0"]
    assert MASTER.worker().secret not in [MASTER.issue(name).secret for name in names]


def test_several_keys_in_lines() -> None:
    text = f"# ours\n\n{key_line(MASTER)}\r\n {OLD.id} : {OLD.secret.hex().upper()} \n"
    assert read_master_keys(text.encode(), "file") == (MASTER, OLD)
    assert read_issued_keys(key_line(MASTER), "key") == (IssuedKey("new", SECRET),)


@pytest.mark.parametrize(
    "secret",
    [
        bytes(range(200, 232)),
        b"a text of 32 characters or more.",
        b"\x01" * 31 + b":",
        b"h" * 4096,
    ],
)
def test_one_key_alone_is_all_bytes_but_a_last_newline(secret: bytes) -> None:
    (key,) = read_master_keys(secret + b"\n", "file")
    assert key.secret == secret
    (same,) = read_master_keys(secret, "file")
    assert same == key
    assert read_master_keys(key_line(key).encode(), "file") == (key,), "its id goes with it"


HEX = SECRET.hex()
WRONG = {
    "short": (b"x" * 31, "not 31"),
    "long": (b"\xff" * 4097, "not 4097"),
    "short in a line": (b"a:" + HEX[:-2].encode(), "not 31"),
    "no digits": (f"a:{HEX[:-1]}s".encode(), "hexadecimal"),
    "odd digits": (f"a:{HEX[:-1]}".encode(), "hexadecimal"),
    "no id": (f":{HEX}".encode(), "no `id:hex`"),
    "id with blanks": (f"a b:{HEX}".encode(), "no `id:hex`"),
    "long id": (f"{'a' * 33}:{HEX}".encode(), "no `id:hex`"),
    "no key": (b"# nothing here\n", "no key"),
    "a second line that is none": (f"a:{HEX}\n{HEX}".encode(), "line 2"),
    "an id twice": (f"a:{HEX}\na:{HEX}".encode(), "second key"),
    "too many": ("\n".join(f"{n}:{HEX}" for n in range(MAX_KEYS + 1)).encode(), "more than"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told_and_no_key_is_shown(name: str) -> None:
    data, why = WRONG[name]
    with pytest.raises(SettingsError) as raised:
        read_master_keys(data, "signing.file keys")
    said = str(raised.value)
    assert why in said
    assert "signing.file keys" in said
    assert raised.value.hint
    assert HEX[:16] not in said
    assert raised.value.__cause__ is None


def test_a_runner_is_not_given_a_master_key() -> None:
    with pytest.raises(SettingsError, match="32 bytes"):
        read_issued_keys(key_line(OLD), "signing_key")


def test_the_runners_key_as_text_or_in_a_file(tmp_path: Path) -> None:
    issued = MASTER.issue("r"), OLD.issue("r")
    text = "\n".join(map(key_line, issued))
    (tmp_path / "r.key").write_text(text)
    assert issued_keys(text) == issued_keys(tmp_path / "r.key") == issued
    assert issued_keys(None) == ()
    with pytest.raises(SettingsError, match="can't be read"):
        issued_keys(tmp_path / "none")


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (bytes(range(128, 228)), 1),
        (b"\x00\xff\xfe" * 30, 1),
        (b"\n\n" + b"\xff" * 50, 3),
        (b"# a comment\nno key", 2),
        (b"\x0b\x0c\x1c\xff", 1),
    ],
)
def test_what_is_no_key_is_told_with_its_line(tmp_path: Path, data: bytes, line: int) -> None:
    (tmp_path / "r.key").write_bytes(data)
    with pytest.raises(SettingsError, match=rf"r\.key, line {line}:"):
        issued_keys(tmp_path / "r.key")


def test_a_runner_with_a_key_has_a_name() -> None:
    with pytest.raises(SettingsError, match="runner"):
        Options(signing_keys=(MASTER.issue("r"),))


def test_settings_read_keys_and_show_none(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"{key_line(MASTER)}\n{key_line(OLD)}\n")
    settings = load({"signing.file": file, "signing.events": "verify"}).settings
    assert settings.signing.read() == (MASTER, OLD)
    verifier = settings.signing.verifier()
    assert verifier is not None
    assert (verifier.keys, verifier.required) == ((MASTER, OLD), False)
    shown = repr((settings, verifier, settings.signing.read(), MASTER.issue("r")))
    for secret in (MASTER.secret, OLD.secret, MASTER.issue("r").secret):
        assert secret.hex() not in shown
        assert repr(secret)[2:-1] not in shown
    loaded = load({"signing.secret": "s" * 40})
    assert "s" * 40 not in repr(loaded.settings) + str(list(loaded.rows()))
    assert loaded.settings.signing.read()[0].secret == b"s" * 40
    assert load().settings.signing.read() == ()


def test_checking_without_a_key_is_refused_where_it_would_be_done() -> None:
    signing = load({"signing.events": "required"}).settings.signing
    with pytest.raises(SettingsError, match=r"signing\.events is required") as raised:
        signing.verifier()
    assert "signing.events=off" in (raised.value.hint or "")
    assert load().settings.signing.verifier() is None
