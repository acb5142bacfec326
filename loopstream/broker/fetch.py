"""Bring locked jars into a folder: from Maven's local repository, else through jgo.

Nothing here is trusted: `jars.ensure_jars` checks every file's SHA-256 before it counts.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from loopstream.broker.checksum import sha256_of
from loopstream.broker.lockfile import Jar
from loopstream.broker.maven import REPOSITORY_VARIABLE, MavenSource, find_source
from loopstream.broker.say import say
from loopstream.errors import BrokerError

if TYPE_CHECKING:
    from jgo.maven import MavenContext

_PARALLEL = 8
_ATTEMPTS = 3
_TIMEOUT_SECONDS = 30


class Fetch(Protocol):
    """Puts each jar into the folder under ``jar.filename``."""

    def __call__(self, jars: Sequence[Jar], folder: Path) -> None:
        """Raise BrokerError if a jar can't be had."""
        ...


def fetch_jars(jars: Sequence[Jar], folder: Path) -> None:
    """Fetch jars, with a note on stderr.

    Raises:
        BrokerError: one can't be had, or jgo is not installed.
    """
    source = find_source()
    missing = [jar for jar in jars if not _take_local(jar, source.local, folder)]
    if not missing:
        return
    megabytes = sum(jar.size for jar in missing) / 1e6
    say(f"fetching {len(missing)} jars of Apache Kafka ({megabytes:.0f} MB) from {source.origin}")
    try:
        _through_jgo(missing, source, folder)
    except _FetchError as error:
        _through_mvn(missing, source, folder, error)


class _FetchError(Exception):
    """A jar could not be fetched; the text names the jar and the kind of fault, never a URL."""


def _take_local(jar: Jar, repository: Path, folder: Path) -> bool:
    path = repository / jar.repository_path
    try:
        if path.stat().st_size != jar.size or sha256_of(path) != jar.sha256:
            return False
        shutil.copyfile(path, folder / jar.filename)
    except OSError:
        return False
    return True


def _through_jgo(jars: Sequence[Jar], source: MavenSource, folder: Path) -> None:
    context = jgo_context(source, folder / "repository")
    progress = _Progress(len(jars))

    def fetch(jar: Jar) -> None:
        _resolve(context, jar, source.folders).replace(folder / jar.filename)
        progress.advance()

    with ThreadPoolExecutor(_PARALLEL) as pool:
        for _ in pool.map(fetch, jars):
            continue


def jgo_context(source: MavenSource, repository: Path) -> MavenContext:
    """A jgo context that downloads into ``repository``.

    Raises:
        BrokerError: jgo is not installed.
    """
    try:
        from jgo.maven import MavenContext  # noqa: PLC0415 - jgo belongs to an extra
    except ImportError as error:
        raise BrokerError(
            "the jgo package, which fetches Kafka's jars, is not installed.",
            hint="Install the extra: pip install 'loopstream[broker]'.",
        ) from error
    # At debug level jgo logs the URLs that it tries, and a mirror's URL may hold a password.
    logging.getLogger("jgo").setLevel(logging.WARNING)
    return MavenContext(
        repo_cache=repository,
        local_repos=list(source.folders),
        remote_repos=None if source.remote is None else dict(source.remote),
        timeout=_TIMEOUT_SECONDS,
    )


def _resolve(context: MavenContext, jar: Jar, folders: Sequence[Path]) -> Path:
    artifact = context.project(jar.group, jar.artifact).at_version(jar.version).artifact()
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            path = artifact.resolve()
            return _copy_of(path, artifact.cached_path) if folders else path
        except (OSError, RuntimeError) as error:  # requests' errors are OSErrors
            # jgo takes a half-written file for a finished one on the next try.
            if artifact.cached_path:
                artifact.cached_path.unlink(missing_ok=True)
            if attempt == _ATTEMPTS or not context.remote_repos:
                raise _FetchError(f"{jar.coordinates}: {type(error).__name__}") from None
    raise AssertionError("unreachable")


def _copy_of(path: Path, target: Path | None) -> Path:
    if target is None or path == target:
        return path
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, target)
    return target


def _through_mvn(
    jars: Sequence[Jar], source: MavenSource, folder: Path, error: _FetchError
) -> None:
    """A Maven on the PATH knows more ways: encrypted passwords, the proxies of settings.xml."""
    mvn = shutil.which("mvn")
    if mvn is None or os.environ.get(REPOSITORY_VARIABLE):
        raise _unobtainable(source, error)
    say("trying the mvn command instead")
    from jgo.maven import MavenContext, MvnResolver  # noqa: PLC0415 - jgo belongs to an extra

    context = MavenContext(repo_cache=source.local, remote_repos={})
    wanted = [context.create_dependency(f"{jar.coordinates}!") for jar in jars]
    try:
        MvnResolver(Path(mvn)).resolve(wanted)
    except (OSError, RuntimeError):
        raise _unobtainable(source, error) from None
    if lost := [jar.coordinates for jar in jars if not _take_local(jar, source.local, folder)]:
        raise _unobtainable(source, _FetchError(", ".join(lost[:3])))


def _unobtainable(source: MavenSource, error: _FetchError) -> BrokerError:
    return BrokerError(
        f"Kafka's jars can't be fetched from {source.origin}: {error}.",
        hint=f"Check the network, or name a Maven repository in {REPOSITORY_VARIABLE}, "
        "or point LOOPSTREAM_BOOTSTRAP at a running Kafka.",
    )


class _Progress:
    """A counter on stderr, drawn only on a terminal."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._write: Callable[[str], object] | None = (
            sys.stderr.write if sys.stderr.isatty() else None
        )

    def advance(self) -> None:
        self._done += 1
        if self._write:
            end = "\n" if self._done == self._total else ""
            self._write(f"\rloopstream: {self._done} of {self._total} jars{end}")
