"""The demo plays where it can't do harm, whatever is configured."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from loopstream.cli.demo import demo_settings, names_brokers, told_only_here
from loopstream.cli.options import load_settings
from loopstream.config import Settings
from loopstream.errors import UsageError

CONFIGURED = {
    "LOOPSTREAM_BOOTSTRAP": "kafka:9092",
    "LOOPSTREAM_PREFIX": "acme",
    "LOOPSTREAM_DEPLOYMENT__MODE": "shadow",
    "LOOPSTREAM_SECURITY__PROTOCOL": "SSL",
}


@pytest.fixture(autouse=True)
def configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in CONFIGURED.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LOOPSTREAM_CACHE_DIR", "cache")
    Path("loopstream.toml").write_text('partitions = 7\n[security]\nprotocol = "SSL"\n')


def test_environment_and_file_are_hidden_here_and_from_children() -> None:
    with told_only_here():
        assert load_settings().settings.model_dump() == Settings.model_construct().model_dump()
        assert not CONFIGURED.keys() & os.environ.keys()
        assert os.environ["LOOPSTREAM_CACHE_DIR"] == "cache"
    assert load_settings().settings.prefix == "acme"
    assert "LOOPSTREAM_CONFIG" not in os.environ


def test_on_its_own_broker_it_needs_no_prefix_of_its_own() -> None:
    with told_only_here():
        assert demo_settings(load_settings(), None).prefix == "loopstream"
        assert demo_settings(load_settings(prefix="mine"), None).prefix == "mine"


def test_what_outlives_it_is_never_under_the_configured_prefix(tmp_path: Path) -> None:
    named = [demo_settings(load_settings("kafka:9092"), None) for _ in range(2)]
    with told_only_here():
        kept = demo_settings(load_settings(), tmp_path)
    prefixes = {settings.prefix for settings in (*named, kept)}
    assert len(prefixes) == 3
    assert all(prefix.startswith("demo-") for prefix in prefixes)
    assert named[0].security.protocol == "SSL"
    with pytest.raises(UsageError, match="prefix of its own"):
        demo_settings(load_settings("kafka:9092", "acme"), None)


def test_a_file_names_no_brokers_for_it(tmp_path: Path) -> None:
    file = tmp_path / "named.toml"
    file.write_text('bootstrap = "kafka:9092"\nprefix = "acme"\n')
    with told_only_here():
        assert demo_settings(load_settings(file=file), None).prefix == "loopstream"
    assert not names_brokers(None, ["prefix=acme"])
    assert names_brokers(None, ["bootstrap=kafka:9092"])
    assert names_brokers("kafka:9092", None)


def test_its_own_broker_takes_no_security() -> None:
    with told_only_here(), pytest.raises(UsageError, match="no security settings"):
        demo_settings(load_settings(values=["security.protocol=SSL"]), None)
