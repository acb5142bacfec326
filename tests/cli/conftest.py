from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from loopstream.cli import run


class Said(NamedTuple):
    """What a command did: exit code, data, talk."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def rows(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


Cli = Callable[..., Said]


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command line in an empty folder and an empty environment."""
    monkeypatch.chdir(tmp_path)
    for name in ("LOOPSTREAM_BOOTSTRAP", "LOOPSTREAM_PREFIX", "LOOPSTREAM_CONFIG"):
        monkeypatch.delenv(name, raising=False)

    def command(*arguments: object) -> Said:
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        return Said(code, *capsys.readouterr())

    return command


@pytest.fixture
def on_kafka(cli: Cli, bootstrap: str, prefix: str) -> Cli:
    """Runs a command line against the broker, under a prefix of its own."""

    def command(*arguments: object) -> Said:
        return cli(*arguments, "--bootstrap", bootstrap, "--prefix", prefix)

    return command
