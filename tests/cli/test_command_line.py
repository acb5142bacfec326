from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from loopstream import __version__
from loopstream.cli import run
from tests.cli.conftest import Cli

ROOT = Path(__file__).resolve().parents[2]
VERBS = [
    "broker",
    "config check",
    "config push",
    "config show",
    "conformance",
    "publish",
    "runs list",
    "runs show",
    "schemas",
    "topics create",
    "topics show",
    "verdicts",
    "worker",
]


def test_help_and_version_succeed(cli: Cli) -> None:
    assert __version__ in cli("--version").out
    said = cli("--help")
    assert said.code == 0
    for verb in VERBS:
        assert verb.split()[0] in said.out


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_teaches_by_example(cli: Cli, verb: str) -> None:
    said = cli(*verb.split(), "--help")
    assert said.code == 0
    assert f"$ loopstream {verb}" in said.out or f"loopstream {verb}" in said.out


def test_a_wrong_verb_or_option_is_a_usage_error(cli: Cli) -> None:
    assert cli("no-such-verb").code == 2
    assert cli("verdicts", "--no-such-option").code == 2


def test_help_imports_neither_kafka_nor_faust_nor_pydantic() -> None:
    script = (
        "import sys; from loopstream.cli import run; run(['--help']);"
        "print([m for m in ('kafka', 'faust', 'pydantic', 'aiohttp') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("module", "extra"), [("typer", "worker"), ("rocksdict", "durable"), ("jgo", "broker")]
)
def test_a_module_that_is_not_installed_names_its_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], module: str, extra: str
) -> None:
    def missing(_: object) -> int:
        raise ModuleNotFoundError(f"No module named {module!r}", name=f"{module}.inner")

    monkeypatch.setattr("loopstream.cli._run", missing)
    assert run([]) == 2
    assert f"pip install 'loopstream[{extra}]'" in capsys.readouterr().err


def test_settings_show_with_their_origin(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("loopstream.toml").write_text('prefix = "acme"\n')
    monkeypatch.setenv("LOOPSTREAM_LOG__LEVEL", "debug")
    said = cli("config", "show", "--origin", "--set", "worker.standby_replicas=1", "-o", "ndjson")
    origins = {row["setting"]: (row["value"], row["origin"]) for row in said.rows}
    assert origins["prefix"] == ("acme", "loopstream.toml:1")
    assert origins["log.level"] == ("debug", "environment LOOPSTREAM_LOG__LEVEL")
    assert origins["worker.standby_replicas"] == ("1", "command line (worker.standby_replicas)")
    assert origins["bootstrap"] == ("localhost:9092", "default")
    assert "origin" not in cli("config", "show").out


def test_secrets_are_masked(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOPSTREAM_TENANT_KEY__SECRET", "hunter2")
    monkeypatch.setenv("LOOPSTREAM_TENANT_KEY__ID", "k1")
    for form in ("table", "json", "ndjson"):
        said = cli("config", "show", "-o", form)
        assert "**********" in said.out
        assert "hunter2" not in said.out + said.err


def test_a_wrong_setting_is_one_message_with_its_place(cli: Cli) -> None:
    Path("loopstream.toml").write_text("[worker]\nstroe = 1\n")
    said = cli("verdicts")
    assert said.code == 3
    assert said.out == ""
    assert said.err.startswith("loopstream: loopstream.toml:2: worker.stroe is no setting.")


def test_set_wants_a_key_and_a_value(cli: Cli) -> None:
    said = cli("config", "show", "--set", "prefix")
    assert said.code == 2
    assert "not KEY=VALUE" in said.err


def test_debug_shows_where_it_came_from(cli: Cli) -> None:
    with pytest.raises(Exception, match="not KEY=VALUE"):
        cli("--debug", "config", "show", "--set", "prefix")
    assert cli("config", "show", "--set", "prefix").code == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("verdicts", "--follow", "-o", "json"),
        ("verdicts", "--new"),
        ("publish",),
        ("publish", "x.jsonl", "--sample", "loop"),
        ("runs", "show", "  "),
    ],
)
def test_what_makes_no_sense_is_refused_before_kafka_is_asked(
    cli: Cli, arguments: tuple[str, ...]
) -> None:
    assert cli(*arguments).code == 2


def test_schemas_are_written_and_checked_for_drift(cli: Cli) -> None:
    written = cli("schemas", "out")
    assert written.code == 0
    assert "out/event.schema.json" in written.out.splitlines()
    assert cli("schemas", "out", "--check").code == 0
    Path("out/event.schema.json").write_text("{}")
    drifted = cli("schemas", "out", "--check")
    assert drifted.code == 5
    assert "out/event.schema.json" in drifted.err


def test_the_committed_schemas_are_those_of_the_models(cli: Cli) -> None:
    assert cli("schemas", ROOT / "schemas", "--check").code == 0


@pytest.mark.parametrize(
    "words",
    [
        "config check",
        "config push",
        "up --detectors",
        "detectors",
        "publish",
        "conformance",
        "scenarios",
        "replay",
    ],
)
def test_an_input_file_that_is_not_there_is_one_exit_code(cli: Cli, words: str) -> None:
    said = cli(
        *words.split(), "absent.jsonl", *(["--bootstrap", "127.0.0.1:1"] if "up" in words else [])
    )
    assert said.code == 5, said.err
    assert "absent.jsonl" in said.err
