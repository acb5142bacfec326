"""Who may read and who may act."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopstream.config.tree import WebSettings
from loopstream.errors import SettingsError
from loopstream.web.access import Access, is_loopback
from tests.web.conftest import TOKEN


def access(**settings: Any) -> Access:
    return Access(WebSettings.model_validate(settings))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.8.8.8"])
def test_the_loopback_needs_nothing(host: str) -> None:
    assert is_loopback(host)
    found = access(host=host)
    assert found.is_open()
    assert not found.can_act


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.7", "dashboard.example", ""])
def test_anything_else_is_refused_without_a_token_or_a_proxy(host: str) -> None:
    with pytest.raises(SettingsError, match="open to anyone"):
        access(host=host or "*")
    assert not access(host=host or "*", token=TOKEN).is_open()
    assert not access(host=host or "*", user_header="X-User").is_open()


def test_a_short_token_is_refused() -> None:
    with pytest.raises(SettingsError, match="16 to"):
        access(token="short")


def test_the_token_may_stand_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    assert access(token_file=file).is_token(TOKEN)
    with pytest.raises(SettingsError, match="can't be read"):
        access(token_file=tmp_path / "nothing")
    with pytest.raises(SettingsError, match="16 to"):
        access(token_file="/dev/null")


@pytest.mark.parametrize(
    ("host", "direct"),
    [
        ("127.0.0.1:8400", True),
        ("localhost:8400", True),
        ("LOCALHOST", True),
        ("[::1]:8400", True),
        ("evil.example", False),
        ("localhost.evil.example:8400", False),
        ("127.0.0.1.evil.example", False),
        ("", False),
    ],
)
def test_an_open_dashboard_answers_to_this_machine_s_names_only(host: str, direct: bool) -> None:
    assert access().is_direct(host, {}) is direct
    assert not access().is_direct(host, {"X-Forwarded-For": "1.2.3.4"})


def test_a_proxy_is_believed_by_its_address() -> None:
    found = access(user_header="X-User", trusted_proxies="10.1.0.0/16")
    assert found.user("10.1.2.3", {"X-User": "ada"}) == "ada"
    assert found.user("10.2.0.1", {"X-User": "ada"}) is None
    assert found.user("10.1.2.3", {"X-User": " "}) is None
    assert found.user("10.1.2.3", {}) is None
    assert found.user(None, {"X-User": "ada"}) is None
    assert access().user("127.0.0.1", {"X-User": "ada"}) is None


def test_a_network_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="IPv4 or IPv6"):
        WebSettings(trusted_proxies="everyone")


def test_a_session_is_known_again_also_by_the_next_process() -> None:
    first, second = access(token=TOKEN), access(token=TOKEN)
    cookie = first.issue()
    session = second.session(cookie)
    assert session is not None
    assert session == first.session(cookie)
    assert TOKEN not in cookie
    other = first.session(first.issue())
    assert other is not None
    assert other.csrf != session.csrf


@given(st.text(max_size=300))
def test_nothing_else_is_a_session(text: str) -> None:
    found = access(token=TOKEN)
    assert found.session(text) is None
    assert not found.is_token(text)
    assert not found.bearer(text)


def test_a_changed_session_is_none() -> None:
    found = access(token=TOKEN)
    cookie = found.issue()
    for at in range(len(cookie)):
        changed = cookie[:at] + ("0" if cookie[at] != "0" else "1") + cookie[at + 1 :]
        assert found.session(changed) is None
    assert access(token=f"{TOKEN}2").session(cookie) is None
    assert access().session(cookie) is None


def test_a_session_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    found = access(token=TOKEN)
    cookie = found.issue()
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 13 * 3600)
    assert found.session(cookie) is None


def test_a_bearer_carries_the_token() -> None:
    found = access(token=TOKEN)
    assert found.bearer(f"Bearer {TOKEN}")
    assert not found.bearer(f"Basic {TOKEN}")
    assert not found.bearer(None)
    assert not access().bearer(f"Bearer {TOKEN}")
    assert not access().bearer("Bearer ")
