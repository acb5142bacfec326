"""Child processes: what is measured runs outside the process that measures it."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import defaultdict
from types import TracebackType
from typing import Any, Final, Self

import psutil

from benchmarks.kit.waiting import wait_for

_HOST: Final = "127.0.0.1"


class Child:
    """One process; its output goes to a file, its memory is watched.

    Attributes:
        peak: greatest resident memory seen so far, of it and its children, in MiB.
    """

    def __init__(self, command: list[str]) -> None:
        self._command = " ".join(command)
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the child
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._log
        )
        self.peak = 0.0
        self._seen = psutil.Process(self.process.pid)
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while self.process.poll() is None:
            self.peak = max(self.peak, self.rss)
            time.sleep(0.05)

    @property
    def rss(self) -> float:
        """Resident memory now, of it and its children, in MiB; 0 when it is gone."""
        with contextlib.suppress(psutil.Error):
            family = [self._seen, *self._seen.children(recursive=True)]
            return float(sum(each.memory_info().rss for each in family)) / 2**20
        return 0.0

    @property
    def cpu(self) -> float:
        """Seconds of processor time so far; 0 when it is gone."""
        with contextlib.suppress(psutil.Error):
            times = self._seen.cpu_times()
            return float(times.user + times.system)
        return 0.0

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self.process.poll() is None

    def said(self) -> str:
        """The end of what it wrote to stderr."""
        self._log.seek(0)
        return self._log.read().decode(errors="replace")[-4000:]

    def output(self, timeout_s: float) -> str:
        """All of its stdout, once it has ended.

        Raises:
            TimeoutError: it has not ended in time; it is killed.
        """
        try:
            out, _ = self.process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise TimeoutError(f"{self._command}: {self.said()}") from None
        return out.decode(errors="replace")

    def kill(self) -> None:
        """SIGKILL, at once."""
        self.process.kill()
        self.process.wait()

    def stop(self, timeout_s: float = 30.0) -> None:
        """SIGTERM, then SIGKILL."""
        if not self.alive:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        self._log.close()


class Worker(Child):
    """The product: ``loopstream worker`` with its metrics port.

    Args:
        settings: process settings by key, for example ``worker.checkpoint_interval_s``.
    """

    def __init__(self, bootstrap: str, prefix: str, **settings: Any) -> None:
        self.port = free_port()
        given = {"bootstrap": bootstrap, "prefix": prefix, "worker.metrics_port": self.port}
        command = [sys.executable, "-m", "loopstream", "worker"]
        for name, value in {**given, **settings}.items():
            command += ["--set", f"{name.replace('__', '.')}={value}"]
        self.began = time.monotonic()
        super().__init__(command)

    def ready(self) -> bool:
        """Whether its partitions were assigned, recovered and opened."""
        with contextlib.suppress(OSError):
            return self._get("/readyz") is not None
        self.must_live()
        return False

    def must_live(self) -> None:
        """There is nothing to measure any more otherwise.

        Raises:
            RuntimeError: the worker has ended; with the end of what it said.
        """
        if not self.alive:
            raise RuntimeError(f"the worker ended: {self.said()}")

    def wait_ready(self, timeout_s: float = 180.0) -> float:
        """Seconds from the process's start until it was ready."""
        wait_for("worker ready", self.ready, timeout_s)
        return time.monotonic() - self.began

    def metrics(self) -> dict[str, float]:
        """Its metrics by name, summed over labels; empty while the port does not answer."""
        with contextlib.suppress(OSError):
            return parse_metrics(self._get("/metrics") or "")
        self.must_live()
        return {}

    def _get(self, path: str) -> str | None:
        with urllib.request.urlopen(f"http://{_HOST}:{self.port}{path}", timeout=5) as answer:
            return str(answer.read().decode())


def parse_metrics(text: str) -> dict[str, float]:
    """Prometheus' text format by name; the values of a name's labels are added up."""
    found: dict[str, float] = defaultdict(float)
    for line in text.splitlines():
        if line and not line.startswith("#"):
            series, _, value = line.rpartition(" ")
            found[series.split("{", 1)[0]] += float(value)
    return dict(found)


def free_port() -> int:
    """A port that the OS picks; free a moment ago."""
    with socket.socket() as holder:
        holder.bind((_HOST, 0))
        return int(holder.getsockname()[1])
