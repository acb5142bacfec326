from __future__ import annotations

from pathlib import Path

import pytest

from loopstream.broker.maven import REPOSITORY_VARIABLE, find_source, mirrors_central
from loopstream.errors import BrokerError

MIRROR = "<mirror><id>{id}</id><mirrorOf>{of}</mirrorOf><url>{url}</url></mirror>"


def settings(folder: Path, body: str, *, namespace: str = "") -> dict[str, str]:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "settings.xml").write_text(f"<settings{namespace}>{body}</settings>")
    return {"HOME": str(folder.parent), "PATH": ""}


def mirror(of: str = "central", url: str = "https://mirror.test/maven/", name: str = "m") -> str:
    return f"<mirrors>{MIRROR.format(id=name, of=of, url=url)}</mirrors>"


@pytest.mark.parametrize(
    ("pattern", "covers"),
    [
        ("central", True),
        ("*", True),
        ("external:*", True),
        ("other, central", True),
        ("*,!central", False),
        ("external:http:*", False),
        ("other", False),
        ("", False),
    ],
)
def test_patterns_that_cover_central(pattern: str, covers: bool) -> None:
    assert mirrors_central(pattern) is covers


def test_without_settings_jgo_decides(tmp_path: Path) -> None:
    source = find_source({"HOME": str(tmp_path), "PATH": ""})
    assert source.remote is None
    assert source.local == tmp_path / ".m2" / "repository"


@pytest.mark.parametrize(
    "namespace", ["", ' xmlns="urn:maven-settings"'], ids=["bare", "namespaced"]
)
def test_the_users_mirror_is_taken(tmp_path: Path, namespace: str) -> None:
    environ = settings(tmp_path / ".m2", mirror(), namespace=namespace)
    source = find_source(environ)
    assert source.remote == {"m": "https://mirror.test/maven"}
    assert "settings.xml" in source.origin


def test_a_mirror_by_name_goes_before_one_by_pattern(tmp_path: Path) -> None:
    both = mirror("*", "https://all.test") + mirror("central", "https://central.test")
    body = f"<mirrors>{both.replace('<mirrors>', '').replace('</mirrors>', '')}</mirrors>"
    assert find_source(settings(tmp_path / ".m2", body)).remote == {"m": "https://central.test"}


def test_the_installations_settings_come_after_the_users(tmp_path: Path) -> None:
    environ = settings(tmp_path / "home" / ".m2", mirror("other", "https://unused.test"))
    settings(tmp_path / "maven" / "conf", mirror(url="https://installed.test"))
    environ["MAVEN_HOME"] = str(tmp_path / "maven")
    assert find_source(environ).remote == {"m": "https://installed.test"}


def test_settings_of_the_mvn_on_the_path_are_found(tmp_path: Path) -> None:
    settings(tmp_path / "maven" / "conf", mirror(url="https://installed.test"))
    mvn = tmp_path / "maven" / "bin" / "mvn"
    mvn.parent.mkdir()
    mvn.write_text("#!/bin/sh\n")
    mvn.chmod(0o755)
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "mvn").symlink_to(mvn)
    environ = {"HOME": str(tmp_path), "PATH": str(tmp_path / "path")}
    assert find_source(environ).remote == {"m": "https://installed.test"}


def test_credentials_reach_the_url_and_no_message(tmp_path: Path) -> None:
    server = (
        "<servers><server><id>m</id><username>${env.WHO}</username>"
        "<password>p@ss/word</password></server></servers>"
    )
    environ = settings(tmp_path / ".m2", mirror() + server)
    source = find_source({**environ, "WHO": "jane"})
    assert source.remote == {"m": "https://jane:p%40ss%2Fword@mirror.test/maven"}
    assert "ss/word" not in repr(source)
    assert "p%40ss" not in repr(source)


def test_an_encrypted_password_is_left_to_mvn(tmp_path: Path) -> None:
    server = (
        "<servers><server><id>m</id><username>jane</username>"
        "<password>{COQLCE6DU6GtcS5P=}</password></server></servers>"
    )
    source = find_source(settings(tmp_path / ".m2", mirror() + server))
    assert source.remote == {"m": "https://mirror.test/maven"}


def test_the_variable_goes_before_settings(tmp_path: Path) -> None:
    environ = settings(tmp_path / ".m2", mirror())
    source = find_source({**environ, REPOSITORY_VARIABLE: "https://mine.test/repo/"})
    assert source.remote == {"given": "https://mine.test/repo"}


@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_the_variable_may_name_a_folder(tmp_path: Path, form: str) -> None:
    value = form.format(tmp_path)
    source = find_source({"HOME": str(tmp_path), REPOSITORY_VARIABLE: value})
    assert source.folders == (tmp_path,)
    assert source.remote == {}


def test_a_variable_that_names_nothing_is_refused(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), REPOSITORY_VARIABLE: str(tmp_path / "none")}
    with pytest.raises(BrokerError, match="neither an http"):
        find_source(environ)


def test_the_local_repository_is_where_settings_say(tmp_path: Path) -> None:
    body = "<localRepository>${user.home}/elsewhere</localRepository>"
    environ = settings(tmp_path / ".m2", body)
    assert find_source(environ).local == tmp_path / "elsewhere"
    plain = {"HOME": str(tmp_path / "other"), "M2_REPO": "/given/repo"}
    assert find_source(plain).local == Path("/given/repo")


def test_broken_settings_are_named(tmp_path: Path) -> None:
    environ = settings(tmp_path / ".m2", "<mirrors>")
    with pytest.raises(BrokerError, match="can't be read") as caught:
        find_source(environ)
    assert caught.value.where == str(tmp_path / ".m2" / "settings.xml")
