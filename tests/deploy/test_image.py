from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopstream import __version__
from loopstream.config import load


@pytest.fixture(scope="module")
def steps(root: Path) -> list[tuple[str, str]]:
    """(instruction, rest) of the Dockerfile, continuation lines joined."""
    text = (root / "deploy/Dockerfile").read_text().replace("\\\n", " ")
    lines = (line.strip() for line in text.splitlines())
    pairs = (line.split(None, 1) for line in lines if line and not line.startswith("#"))
    return [(first, rest) for first, rest in pairs]


def _of(steps: list[tuple[str, str]], instruction: str) -> list[str]:
    return [rest for name, rest in steps if name == instruction]


def test_two_stages_and_the_last_has_no_compiler_and_no_root(steps: list[tuple[str, str]]) -> None:
    assert len(_of(steps, "FROM")) == 2
    last = steps[max(at for at, (name, _) in enumerate(steps) if name == "FROM") :]
    assert _of(last, "FROM") == ["${PYTHON_IMAGE}"]
    assert "RUN" not in {name for name, _ in last}
    assert _of(last, "USER") == ["10001:10001"]
    assert _of(last, "ENTRYPOINT") == ['["loopstream"]']
    assert _of(last, "HEALTHCHECK")[0].count("/livez") == 1


def test_its_environment_is_settings_that_exist(
    steps: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    pairs = [pair.split("=", 1) for pair in shlex.split(_of(steps, "ENV")[0])]
    for name, value in pairs:
        if name.startswith("LOOPSTREAM_"):
            monkeypatch.setenv(name, value)
    settings = load().settings
    assert settings.worker.metrics_port == 9464
    assert settings.worker.metrics_host == "127.0.0.1"


def test_everything_copied_is_in_the_build_context(
    steps: list[tuple[str, str]], root: Path
) -> None:
    kept = (root / ".dockerignore").read_text().splitlines()
    sources = [
        source for rest in _of(steps, "COPY") if "--from" not in rest for source in _args(rest)
    ]
    assert sources
    for source in sources:
        assert (root / source).exists(), source
        assert f"!{source}" in kept, source


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="the image compiles: no C compiler"
)
def test_its_installation_replayed(
    steps: list[tuple[str, str]], root: Path, tmp_path: Path
) -> None:
    source, target = tmp_path / "src", tmp_path / "opt"
    source.mkdir()
    # What is never imported here need not be compiled.
    environment = os.environ | {"PIP_NO_COMPILE": "1"}
    for rest in _of(steps, "COPY"):
        if "--from" not in rest:
            for name in _args(rest):
                _copy(root / name, source / name)
    for command in _of(steps, "RUN"):
        # With pip's cache: what is tested is that these requirements resolve and suffice.
        words = [_moved(word, target) for word in shlex.split(command) if word != "--no-cache-dir"]
        subprocess.run(words, cwd=source, env=environment, check=True, timeout=800)
    assert _said(tmp_path, target / "bin/loopstream", "--version") == (
        f"loopstream {__version__} (engine: compiled)"
    )
    python = target / "bin/python"
    needs = "import faust, opentelemetry.sdk, loopstream.runtime.app, loopstream.web.app"
    _said(tmp_path, python, "-c", needs)
    # The compiled engine is the engine: each byte that it decides and keeps is the same.
    same = Path(__file__).with_name("decided.py")
    assert _said(tmp_path, python, same) == _said(tmp_path, sys.executable, same)


def _said(folder: Path, *command: str | Path) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    return ran.stdout.strip()


def _args(rest: str) -> Iterator[str]:
    yield from rest.split()[:-1]


def _moved(word: str, target: Path) -> str:
    if word == "python":
        return sys.executable
    return word.replace("/opt/loopstream", str(target))


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)
