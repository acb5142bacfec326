from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from loopstream.broker import jars, maven
from loopstream.config import Settings, load
from loopstream.errors import SettingsError

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "settings.md"


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("LOOPSTREAM_BOOTSTRAP", "LOOPSTREAM_PREFIX", "LOOPSTREAM_CONFIG"):
        monkeypatch.delenv(name, raising=False)


def toml(text: str) -> Path:
    path = Path("loopstream.toml")
    path.write_text(text)
    return path


def test_defaults_stand_where_nothing_is_said() -> None:
    loaded = load()
    assert loaded.settings.bootstrap == "localhost:9092"
    assert {row.origin for row in loaded.rows()} == {"default"}


def test_command_line_beats_environment_beats_file(monkeypatch: pytest.MonkeyPatch) -> None:
    toml('prefix="file"\nbootstrap="file:1"\n\n[worker]\nstore="rocksdict"\nstandby_replicas=1\n')
    monkeypatch.setenv("LOOPSTREAM_PREFIX", "env")
    monkeypatch.setenv("LOOPSTREAM_BOOTSTRAP", "env:2")
    monkeypatch.setenv("LOOPSTREAM_WORKER__STANDBY_REPLICAS", "2")
    loaded = load({"prefix": "cli", "bootstrap": None})
    assert loaded.settings.prefix == "cli"
    assert loaded.settings.bootstrap == "env:2"
    assert loaded.settings.worker.standby_replicas == 2
    assert loaded.settings.worker.store == "rocksdict"
    assert loaded.origins["prefix"] == "command line (prefix)"
    assert loaded.origins["bootstrap"] == "environment LOOPSTREAM_BOOTSTRAP"
    assert (
        loaded.origins["worker.standby_replicas"]
        == "environment LOOPSTREAM_WORKER__STANDBY_REPLICAS"
    )
    assert loaded.origins["worker.store"] == "loopstream.toml:5"
    assert "worker.datadir" not in loaded.origins


def test_an_inline_table_or_json_text_is_the_origin_of_its_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    toml('# first\nlog = { level = "debug" }\n')
    monkeypatch.setenv("LOOPSTREAM_WORKER", '{"store": "rocksdict"}')
    loaded = load()
    assert loaded.settings.log.level == "debug"
    assert loaded.origins["log.level"] == "loopstream.toml:2"
    assert loaded.origins["worker.store"] == "environment LOOPSTREAM_WORKER"


def test_a_file_may_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("other.toml").write_text('prefix = "other"')
    Path("third.toml").write_text('prefix = "third"')
    monkeypatch.setenv("LOOPSTREAM_CONFIG", "other.toml")
    assert load().settings.prefix == "other"
    assert load(file=Path("third.toml")).settings.prefix == "third"


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("\n[worker]\nstroe = 1\n", "loopstream.toml:3", "worker.stroe is no setting."),
        ("[wrker]\nstore = 1\n", "loopstream.toml:2", "wrker is no setting."),
        ("prefxi = 1\n", "loopstream.toml:1", "prefxi is no setting."),
        ("prefix = 'a b'\n", "loopstream.toml:1", "prefix: String should match pattern"),
        ("bootstrap = 'nowhere'\n", "loopstream.toml:1", "bootstrap: nowhere has no port"),
        ("a = \n", "loopstream.toml:1", "is not TOML"),
        ("[security]\nprotocol='SASL_SSL'\n", "loopstream.toml:2", "security: sasl_mechanism and"),
        ("[tenant_key]\nid='k'\n", "loopstream.toml:2", "tenant_key: a key is an id with"),
    ],
)
def test_a_wrong_file_is_refused_with_file_and_line(text: str, where: str, message: str) -> None:
    toml(text)
    with pytest.raises(SettingsError) as caught:
        load()
    assert caught.value.where == where
    assert message in caught.value.message


@pytest.mark.parametrize("name", ["LOOPSTREAM_BOTSTRAP", "LOOPSTREAM_WORKER__STROE"])
def test_an_unknown_variable_is_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "1")
    with pytest.raises(SettingsError, match="is no setting") as caught:
        load()
    assert caught.value.where == f"environment {name}"


def test_the_variables_of_the_embedded_broker_are_no_mistakes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in (jars.CACHE_VARIABLE, maven.REPOSITORY_VARIABLE):
        monkeypatch.setenv(name, "/somewhere")
    assert load().settings.prefix == "loopstream"


def test_a_missing_file_that_was_named_is_an_error() -> None:
    with pytest.raises(SettingsError, match=r"can't be read"):
        load(file=Path("absent.toml"))


def test_an_unknown_key_of_the_command_line_is_refused() -> None:
    with pytest.raises(SettingsError) as caught:
        load({"worker.stroe": "1"})
    assert caught.value.where == "command line (worker.stroe)"


def test_secrets_show_in_no_row_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOPSTREAM_SECURITY__PASSWORD", "hunter2")
    monkeypatch.setenv("LOOPSTREAM_SECURITY__USERNAME", "me")
    rows = list(load().rows())
    (password,) = (row for row in rows if row.setting == "security.password")
    assert password.value == "**********"
    assert password.origin == "environment LOOPSTREAM_SECURITY__PASSWORD"
    assert "hunter2" not in str(rows)
    assert "hunter2" not in repr(load().settings)
    monkeypatch.setenv("LOOPSTREAM_SECURITY__PROTOCOL", "hunter2")
    with pytest.raises(SettingsError) as caught:
        load()
    assert "hunter2" not in str(caught.value)


def test_settings_by_themselves_look_at_no_source_that_is_not_named() -> None:
    toml('prefix = "file"')
    assert Settings(prefix="x").prefix == "x"
    assert Settings().prefix == "loopstream"


def test_every_setting_is_explained() -> None:
    def unexplained(section: type[BaseModel]) -> list[str]:
        found = []
        for name, field in section.model_fields.items():
            kind = field.annotation
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                found += unexplained(kind)
            elif not field.description:
                found.append(name)
        return found

    assert unexplained(Settings) == []


def test_the_connection_is_that_of_the_security_section() -> None:
    toml("""
        bootstrap = "a:1,b:2"
        [security]
        protocol = "SASL_SSL"
        mechanism = "SCRAM-SHA-512"
        username = "me"
        password = "hunter2"
        cafile = "ca.pem"
    """)
    kwargs = load().settings.connection.for_kafka_python()
    assert kwargs["bootstrap_servers"] == ["a:1", "b:2"]
    assert kwargs["security_protocol"] == "SASL_SSL"
    assert kwargs["sasl_plain_password"] == "hunter2"
    assert kwargs["ssl_cafile"] == "ca.pem"


def test_the_reference_page_lists_every_setting() -> None:
    lines = REFERENCE.read_text().splitlines()
    for row in load().rows():
        default = f"`{row.value}`" if row.value else ""
        assert f"| `{row.setting}` | {default} | {row.about.replace('``', '`')} |" in lines
    assert sum(line.startswith("| `") for line in lines) == len(list(load().rows()))
