"""Where Maven artifacts come from, as the user's own Maven is set up.

jgo's pure Python resolver knows no Maven settings, so the part that matters for fetching released
jars is read here: the mirror of Central with its credentials, and the local repository.
Order: ``LOOPSTREAM_MAVEN_REPOSITORY`` (a URL or a folder), the mirror in the user's settings.xml,
the mirror in the Maven installation's settings.xml, jgo's default. HTTP proxies and private
certificate authorities are taken from the usual environment variables (``HTTPS_PROXY``,
``REQUESTS_CA_BUNDLE``).
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit
from xml.etree import ElementTree as ET

from loopstream.errors import BrokerError

REPOSITORY_VARIABLE = "LOOPSTREAM_MAVEN_REPOSITORY"

_MAX_SETTINGS_BYTES = 1024 * 1024
_PLACEHOLDER = re.compile(r"\$\{(env\.\w+|user\.home)\}")


@dataclass(frozen=True, slots=True)
class MavenSource:
    """Where to look for jars.

    Attributes:
        origin: what to call the source in messages; holds no secret.
        remote: repository id to URL, or None for jgo's default. A URL may hold credentials.
        folders: repositories that are plain folders.
        local: Maven's local repository, read before anything is fetched.
    """

    origin: str
    remote: Mapping[str, str] | None = field(repr=False)
    folders: tuple[Path, ...]
    local: Path


@dataclass(frozen=True, slots=True)
class _Settings:
    path: Path
    root: ET.Element
    environ: Mapping[str, str]

    def text(self, element: ET.Element | None, name: str) -> str:
        found = None if element is None else element.find(f"{{*}}{name}")
        raw = "" if found is None or found.text is None else found.text.strip()
        return _PLACEHOLDER.sub(self._value, raw)

    def _value(self, match: re.Match[str]) -> str:
        name = match[1]
        return str(_home(self.environ)) if name == "user.home" else self.environ.get(name[4:], "")


def find_source(environ: Mapping[str, str] = os.environ) -> MavenSource:
    """Read the environment and the settings files that exist.

    Raises:
        BrokerError: a settings file is no XML.
    """
    settings = list(_read_settings(environ))
    local = _local_repository(settings, environ)
    if given := environ.get(REPOSITORY_VARIABLE):
        return _given(given, local)
    for one in settings:
        if mirror := _mirror_of_central(one):
            return MavenSource(f"the mirror set in {one.path}", mirror, (), local)
    return MavenSource("Maven Central", None, (), local)


def mirrors_central(pattern: str) -> bool:
    """Whether a ``mirrorOf`` pattern covers the repository with the id ``central``."""
    tokens = [token.strip() for token in pattern.split(",")]
    return "!central" not in tokens and not {"central", "*", "external:*"}.isdisjoint(tokens)


def _given(value: str, local: Path) -> MavenSource:
    parts = urlsplit(value)
    if parts.scheme in ("http", "https"):
        return MavenSource(REPOSITORY_VARIABLE, {"given": value.rstrip("/")}, (), local)
    folder = Path(parts.path if parts.scheme == "file" else value).expanduser()
    if not folder.is_dir():
        raise BrokerError(
            f"{REPOSITORY_VARIABLE} is neither an http(s) URL nor a folder.",
            hint="Set it to the root of a Maven repository, or unset it.",
        )
    return MavenSource(REPOSITORY_VARIABLE, {}, (folder,), local)


def _read_settings(environ: Mapping[str, str]) -> Iterator[_Settings]:
    for path in _settings_paths(environ):
        try:
            with path.open("rb") as stream:
                data = stream.read(_MAX_SETTINGS_BYTES)
        except OSError:
            continue
        yield _Settings(path, _parse(data, path), environ)


def _parse(data: bytes, path: Path) -> ET.Element:
    try:
        return ET.fromstring(data)  # noqa: S314 - the user's own file, which Maven trusts too
    except ET.ParseError as error:
        raise BrokerError(
            f"Maven's settings can't be read: {error}.",
            where=str(path),
            hint=f"Mend the file, or set {REPOSITORY_VARIABLE}.",
        ) from error


def _settings_paths(environ: Mapping[str, str]) -> Iterator[Path]:
    yield _home(environ) / ".m2" / "settings.xml"
    for name in ("MAVEN_HOME", "M2_HOME"):
        if home := environ.get(name):
            yield Path(home, "conf", "settings.xml")
    if mvn := shutil.which("mvn", path=environ.get("PATH", "")):
        yield Path(mvn).resolve().parent.parent / "conf" / "settings.xml"


def _mirror_of_central(settings: _Settings) -> dict[str, str] | None:
    mirrors = settings.root.findall("{*}mirrors/{*}mirror")
    # Maven prefers the mirror that names the repository to one that matches by a pattern.
    mirrors.sort(key=lambda mirror: settings.text(mirror, "mirrorOf") != "central")
    for mirror in mirrors:
        url = settings.text(mirror, "url")
        if url and mirrors_central(settings.text(mirror, "mirrorOf")):
            name = settings.text(mirror, "id")
            return {name or "mirror": _with_credentials(url.rstrip("/"), name, settings)}
    return None


def _with_credentials(url: str, name: str, settings: _Settings) -> str:
    for server in settings.root.findall("{*}servers/{*}server"):
        user, password = settings.text(server, "username"), settings.text(server, "password")
        # A password in braces is encrypted by Maven; only mvn itself can read it.
        if settings.text(server, "id") == name and user and not password.startswith("{"):
            parts = urlsplit(url)
            login = f"{quote(user, safe='')}:{quote(password, safe='')}@"
            return urlunsplit(parts._replace(netloc=login + parts.netloc))
    return url


def _local_repository(settings: list[_Settings], environ: Mapping[str, str]) -> Path:
    for one in settings:
        if path := one.text(one.root, "localRepository"):
            return Path(path)
    given = environ.get("M2_REPO")
    return Path(given) if given else _home(environ) / ".m2" / "repository"


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ["HOME"]) if environ.get("HOME") else Path.home()
