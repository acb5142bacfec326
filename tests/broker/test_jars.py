from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from loopstream.broker.jars import cache_root, ensure_jars
from loopstream.broker.lockfile import Jar, KafkaLock
from loopstream.errors import BrokerError

from .conftest import CONTENTS, FakeFetch


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_jars_come_in_the_order_of_the_lock(
    tmp_path: Path, tiny_lock: KafkaLock, fake_fetch: FakeFetch
) -> None:
    paths = ensure_jars(tiny_lock, root=tmp_path, fetch=fake_fetch)
    assert [path.name for path in paths] == ["one-1.0.jar", "two-1.0.jar"]
    assert [path.read_bytes() for path in paths] == list(CONTENTS.values())
    assert names(tmp_path / "kafka-9.9.9") == {"one-1.0.jar", "two-1.0.jar"}


def test_a_full_cache_fetches_nothing(
    tmp_path: Path, tiny_lock: KafkaLock, fake_fetch: FakeFetch
) -> None:
    ensure_jars(tiny_lock, root=tmp_path, fetch=fake_fetch)
    ensure_jars(tiny_lock, root=tmp_path, fetch=fake_fetch)
    assert fake_fetch.calls == [["one", "two"]]


def test_another_jar_than_the_locked_one_never_counts(
    tmp_path: Path, tiny_lock: KafkaLock, fake_fetch: FakeFetch
) -> None:
    fake_fetch.contents["two"] = CONTENTS["two"][:-1] + b"!"
    with pytest.raises(BrokerError, match=r"org\.example:two:1\.0 is not the locked jar") as caught:
        ensure_jars(tiny_lock, root=tmp_path, fetch=fake_fetch)
    assert tiny_lock.jars[1].sha256 in str(caught.value)
    assert names(tmp_path / "kafka-9.9.9") == set()


def test_a_half_written_download_never_counts(
    tmp_path: Path, tiny_lock: KafkaLock, fake_fetch: FakeFetch
) -> None:
    fake_fetch.contents["one"] = CONTENTS["one"][:50]
    with pytest.raises(BrokerError, match="is not the locked jar"):
        ensure_jars(tiny_lock, root=tmp_path, fetch=fake_fetch)
    fake_fetch.contents["one"] = CONTENTS["one"]
    assert len(ensure_jars(tiny_lock, root=tmp_path, fetch=fake_fetch)) == 2


def test_a_changed_cached_jar_is_noticed_and_replaced(
    tmp_path: Path,
    tiny_lock: KafkaLock,
    fake_fetch: FakeFetch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = ensure_jars(tiny_lock, root=tmp_path, fetch=fake_fetch)[0]
    before = path.stat()
    path.write_bytes(b"x" * before.st_size)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    ensure_jars(tiny_lock, root=tmp_path, fetch=fake_fetch)
    assert path.read_bytes() == CONTENTS["one"]
    assert fake_fetch.calls[1:] == [["one"]]
    assert "differ from the lock" in capsys.readouterr().err


def test_what_a_dead_process_left_is_cleared(
    tmp_path: Path, tiny_lock: KafkaLock, fake_fetch: FakeFetch
) -> None:
    left = tmp_path / "kafka-9.9.9" / ".staging-dead"
    left.mkdir(parents=True)
    (left / "one-1.0.jar").write_bytes(CONTENTS["one"])
    ensure_jars(tiny_lock, root=tmp_path, fetch=fake_fetch)
    assert not left.exists()
    assert fake_fetch.calls == [["one", "two"]]


def test_of_many_at_once_only_one_fetches(
    tmp_path: Path, tiny_lock: KafkaLock, fake_fetch: FakeFetch
) -> None:
    def slow(jars: Sequence[Jar], folder: Path) -> None:
        fake_fetch(jars, folder)
        time.sleep(0.2)

    with ThreadPoolExecutor(8) as pool:
        wanted = [pool.submit(ensure_jars, tiny_lock, root=tmp_path, fetch=slow) for _ in range(8)]
        results = {future.result() for future in wanted}
    assert len(results) == 1
    assert len(fake_fetch.calls) == 1


def test_a_failed_fetch_leaves_the_next_one_free(
    tmp_path: Path, tiny_lock: KafkaLock, fake_fetch: FakeFetch
) -> None:
    def offline(jars: Sequence[Jar], folder: Path) -> None:
        raise BrokerError("no network")

    with pytest.raises(BrokerError, match="no network"):
        ensure_jars(tiny_lock, root=tmp_path, fetch=offline)
    assert len(ensure_jars(tiny_lock, root=tmp_path, fetch=fake_fetch)) == 2


def test_a_cache_that_is_no_folder_is_refused(
    tmp_path: Path, tiny_lock: KafkaLock, fake_fetch: FakeFetch
) -> None:
    root = tmp_path / "file"
    root.touch()
    with pytest.raises(BrokerError, match="can't be written") as caught:
        ensure_jars(tiny_lock, root=root, fetch=fake_fetch)
    assert "LOOPSTREAM_CACHE_DIR" in str(caught.value)


def test_where_the_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_root({}) == tmp_path / ".cache" / "loopstream"
    assert cache_root({"XDG_CACHE_HOME": "/xdg"}) == Path("/xdg/loopstream")
    given = {"XDG_CACHE_HOME": "/xdg", "LOOPSTREAM_CACHE_DIR": "~/mine"}
    assert cache_root(given) == tmp_path / "mine"
