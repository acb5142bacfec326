from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from loopstream.broker.datadir import DirLock, load_ports, save_ports
from loopstream.broker.process import ChildProcess
from loopstream.errors import BrokerError

SLEEP = ["/bin/sleep", "300"]

PARENT = """
import sys, time
from pathlib import Path
from loopstream.broker.process import ChildProcess
child = ChildProcess(["/bin/sleep", "300"], Path(sys.argv[1]))
print(child.pid, flush=True)
time.sleep(300)
"""


def is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    # An orphan that its new parent has not yet collected is dead all the same.
    return stat.rpartition(")")[2].split()[0] != "Z"


def wait_gone(pid: int, seconds: float = 30) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not is_alive(pid):
            return True
        time.sleep(0.02)
    return False


def test_output_and_status_are_kept(tmp_path: Path) -> None:
    child = ChildProcess(["/bin/sh", "-c", "echo out; echo err >&2; exit 3"], tmp_path / "log")
    assert child.wait(30)
    assert child.returncode == 3
    assert child.pid is None
    assert (tmp_path / "log").read_text() == "out\nerr\n"


def test_end_asks_first_and_kills_after_the_grace(tmp_path: Path) -> None:
    polite = ChildProcess(SLEEP, tmp_path / "polite")
    assert polite.end(30)
    assert polite.returncode == -signal.SIGTERM
    ready = tmp_path / "ready"
    script = f"trap '' TERM; : > {ready}; while :; do sleep 0.1; done"
    stubborn = ChildProcess(["/bin/sh", "-c", script], tmp_path / "stubborn")
    while not ready.exists():
        time.sleep(0.01)
    assert not stubborn.end(0.3)
    assert stubborn.returncode == -signal.SIGKILL


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_the_child_dies_with_a_killed_parent(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path / "log")], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert is_alive(child)
        parent.kill()
    assert wait_gone(child)


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_the_child_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    started: list[ChildProcess] = []
    thread = threading.Thread(target=lambda: started.append(ChildProcess(SLEEP, tmp_path / "log")))
    thread.start()
    thread.join()
    assert not started[0].wait(0.5)
    started[0].kill()


def test_a_command_that_cannot_run_ends_with_a_status(tmp_path: Path) -> None:
    child = ChildProcess([str(tmp_path / "none")], tmp_path / "log")
    assert child.wait(30)
    assert child.returncode != 0


def test_an_output_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BrokerError, match="can't be started"):
        ChildProcess(SLEEP, tmp_path / "no" / "log")


def test_a_data_folder_has_one_user(tmp_path: Path) -> None:
    first = DirLock(tmp_path)
    first.note_pid(4711)
    with pytest.raises(BrokerError, match=r"another broker \(process 4711\)") as caught:
        DirLock(tmp_path)
    assert caught.value.where == str(tmp_path)
    first.release()
    DirLock(tmp_path).release()


def test_a_child_that_inherits_the_lock_keeps_it(tmp_path: Path) -> None:
    lock = DirLock(tmp_path)
    child = ChildProcess(SLEEP, tmp_path / "log", [lock.fileno])
    lock.release()
    with pytest.raises(BrokerError, match="another broker"):
        DirLock(tmp_path)
    child.kill()
    DirLock(tmp_path).release()


@pytest.mark.parametrize("text", ["", "[1]", '{"LOCAL": "x"}', "{", "\udcff"])
def test_ports_that_cannot_be_read_are_forgotten(tmp_path: Path, text: str) -> None:
    save_ports(tmp_path, {"LOCAL": 1234})
    assert load_ports(tmp_path) == {"LOCAL": 1234}
    (tmp_path / "ports.json").write_bytes(os.fsencode(text))
    assert load_ports(tmp_path) == {}
