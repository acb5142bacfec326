"""The user's cache of verified jars.

Every file is hashed on every start: 45 MB take a tenth of a second, and no marker file can then
vouch for a jar that was changed after it was checked.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from loopstream.broker.checksum import sha256_of
from loopstream.broker.fetch import Fetch, fetch_jars
from loopstream.broker.lockfile import Jar, KafkaLock, read_lock
from loopstream.broker.say import say
from loopstream.errors import BrokerError

CACHE_VARIABLE = "LOOPSTREAM_CACHE_DIR"

_STAGING = ".staging-"


def cache_root(environ: Mapping[str, str] = os.environ) -> Path:
    """``LOOPSTREAM_CACHE_DIR``, else ``loopstream`` in XDG_CACHE_HOME or ``~/.cache``."""
    if given := environ.get(CACHE_VARIABLE):
        return Path(given).expanduser()
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "loopstream"


def ensure_jars(
    lock: KafkaLock | None = None, *, root: Path | None = None, fetch: Fetch = fetch_jars
) -> tuple[Path, ...]:
    """Paths of all locked jars, in class path order, each with the locked SHA-256.

    Offline when the cache is complete. Safe among processes: one fetches, the others wait, and a
    jar appears under its name only after it was checked.

    Args:
        lock: what is wanted; the package's own lock file if None.
        root: the cache folder; `cache_root` if None.
        fetch: brings missing jars into a folder.

    Raises:
        BrokerError: a jar can't be had or is not the locked one, or the cache can't be written.
    """
    lock = lock or read_lock()
    root = root or cache_root()
    folder = root / f"kafka-{lock.version}"
    if _unverified(lock, folder):
        try:
            _fill(lock, root, folder, fetch)
        except OSError as error:
            raise BrokerError(
                f"the jar cache can't be written: {error}.",
                where=str(root),
                hint=f"Name a writable folder in {CACHE_VARIABLE}.",
            ) from error
    return tuple(folder / jar.filename for jar in lock.jars)


def _unverified(lock: KafkaLock, folder: Path) -> list[Jar]:
    return [jar for jar in lock.jars if not _is_locked(jar, folder / jar.filename)]


def _is_locked(jar: Jar, path: Path) -> bool:
    try:
        return path.stat().st_size == jar.size and sha256_of(path) == jar.sha256
    except OSError:
        return False


def _fill(lock: KafkaLock, root: Path, folder: Path, fetch: Fetch) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(root / f"kafka-{lock.version}.lock"), _staging(folder) as staging:
        wanted = _unverified(lock, folder)
        _note_changed(wanted, folder)
        if wanted:
            fetch(wanted, staging)
        for jar in wanted:
            _check(jar, staging / jar.filename)
        for jar in wanted:
            (staging / jar.filename).replace(folder / jar.filename)


def _note_changed(wanted: list[Jar], folder: Path) -> None:
    changed = [jar.filename for jar in wanted if (folder / jar.filename).exists()]
    if changed:
        say(f"cached jars differ from the lock, fetching them anew: {', '.join(changed)}")


def _check(jar: Jar, path: Path) -> None:
    found = sha256_of(path)
    if found != jar.sha256:
        raise BrokerError(
            f"{jar.coordinates} is not the locked jar: "
            f"its SHA-256 is {found}, the lock has {jar.sha256}.",
            hint="Nothing was kept. The repository or the way to it is broken or hostile; "
            "try another Maven repository.",
        )


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    with path.open("ab") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


@contextmanager
def _staging(folder: Path) -> Iterator[Path]:
    # We hold the lock, so what lies here was left by a process that died.
    for stale in folder.glob(f"{_STAGING}*"):
        shutil.rmtree(stale, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_STAGING, dir=folder) as path:
        yield Path(path)
