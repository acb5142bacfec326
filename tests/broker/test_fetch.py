"""Fetching through the real jgo, from repositories on loopback."""

from __future__ import annotations

import base64
import gc
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from loopstream.broker.fetch import fetch_jars
from loopstream.broker.jars import ensure_jars
from loopstream.broker.lockfile import KafkaLock
from loopstream.broker.maven import REPOSITORY_VARIABLE
from loopstream.errors import BrokerError

from .conftest import CONTENTS


@dataclass
class Repository:
    """A Maven repository over HTTP that can misbehave."""

    root: Path
    login: str | None = None
    cut_short: int = 0
    asked: list[str] = field(default_factory=list)
    url: str = ""

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        self.asked.append(request.path)
        path = self.root / request.path.lstrip("/")
        if self.login and request.headers.get("Authorization") != self._basic():
            request.send_error(401)
        elif not path.is_file():
            request.send_error(404)
        else:
            self._send(request, path.read_bytes())

    def _send(self, request: BaseHTTPRequestHandler, data: bytes) -> None:
        request.send_response(200)
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        if self.cut_short:
            self.cut_short -= 1
            data = data[: len(data) // 2]
        request.wfile.write(data)

    def _basic(self) -> str:
        return "Basic " + base64.b64encode((self.login or "").encode()).decode()


# jgo does not close a response that it makes no use of.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(autouse=True)
def _lonely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No Maven of the machine's, and no proxy, has a say."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("NO_PROXY", "*")
    for name in ("MAVEN_HOME", "M2_HOME", "M2_REPO", REPOSITORY_VARIABLE):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def remote(repository: Path) -> Iterator[Repository]:
    served = Repository(repository)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.answer(self)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        served.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield served
        server.shutdown()
        thread.join()


def write_settings(tmp_path: Path, url: str, server: str = "") -> None:
    path = tmp_path / "home" / ".m2" / "settings.xml"
    path.parent.mkdir(parents=True)
    path.write_text(
        f"<settings><mirrors><mirror><id>corp</id><mirrorOf>*</mirrorOf><url>{url}</url></mirror>"
        f"</mirrors>{server}</settings>"
    )


def jars_of(lock: KafkaLock, root: Path) -> list[bytes]:
    return [path.read_bytes() for path in ensure_jars(lock, root=root, fetch=fetch_jars)]


def test_the_mirror_of_the_users_settings_is_asked(
    tmp_path: Path, tiny_lock: KafkaLock, remote: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    write_settings(tmp_path, remote.url)
    assert jars_of(tiny_lock, tmp_path / "cache") == list(CONTENTS.values())
    assert "/org/example/one/1.0/one-1.0.jar" in remote.asked
    said = capsys.readouterr()
    assert "fetching 2 jars of Apache Kafka" in said.err
    assert said.out == ""


def test_the_mirrors_password_is_used_and_never_shown(
    tmp_path: Path,
    tiny_lock: KafkaLock,
    remote: Repository,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("DEBUG")
    server = (
        "<servers><server><id>corp</id><username>jane</username>"
        "<password>hush-hush</password></server></servers>"
    )
    write_settings(tmp_path, remote.url, server)
    remote.login = "jane:hush-hush"
    assert jars_of(tiny_lock, tmp_path / "cache") == list(CONTENTS.values())

    remote.login = "jane:changed"
    with pytest.raises(BrokerError) as caught:
        jars_of(tiny_lock, tmp_path / "other")
    shown = [str(caught.value), capsys.readouterr().err, caplog.text]
    assert not [text for text in shown if "hush-hush" in text]


def test_a_download_that_breaks_off_is_tried_again(
    tmp_path: Path, tiny_lock: KafkaLock, remote: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(REPOSITORY_VARIABLE, remote.url)
    remote.cut_short = 1
    assert jars_of(tiny_lock, tmp_path / "cache") == list(CONTENTS.values())


def test_a_hostile_repository_is_refused(
    tmp_path: Path, tiny_lock: KafkaLock, remote: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(REPOSITORY_VARIABLE, remote.url)
    (remote.root / tiny_lock.jars[0].repository_path).write_bytes(b"something else")
    with pytest.raises(BrokerError, match="is not the locked jar"):
        jars_of(tiny_lock, tmp_path / "cache")


def test_what_maven_has_already_is_taken_from_there(
    tmp_path: Path, tiny_lock: KafkaLock, remote: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("M2_REPO", str(remote.root))
    write_settings(tmp_path, remote.url)
    assert jars_of(tiny_lock, tmp_path / "cache") == list(CONTENTS.values())
    assert remote.asked == []


def test_a_folder_can_be_the_repository(
    tmp_path: Path, tiny_lock: KafkaLock, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(REPOSITORY_VARIABLE, str(repository))
    assert jars_of(tiny_lock, tmp_path / "cache") == list(CONTENTS.values())
    assert (repository / tiny_lock.jars[0].repository_path).exists()


def test_a_jar_that_is_nowhere_is_named(
    tmp_path: Path, tiny_lock: KafkaLock, remote: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(REPOSITORY_VARIABLE, remote.url)
    (remote.root / tiny_lock.jars[1].repository_path).unlink()
    with pytest.raises(BrokerError, match=r"org\.example:two:1\.0") as caught:
        jars_of(tiny_lock, tmp_path / "cache")
    assert REPOSITORY_VARIABLE in str(caught.value)


def test_mvn_is_the_second_way(
    tmp_path: Path, tiny_lock: KafkaLock, remote: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_settings(tmp_path, f"{remote.url}/not-here")
    local = tmp_path / "home" / ".m2" / "repository"
    mvn = tmp_path / "path" / "mvn"
    mvn.parent.mkdir()
    mvn.write_text(f"#!/bin/sh\n/bin/mkdir -p {local}\n/bin/cp -r {remote.root}/. {local}\n")
    mvn.chmod(0o755)
    assert jars_of(tiny_lock, tmp_path / "cache") == list(CONTENTS.values())
