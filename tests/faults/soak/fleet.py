"""The workers of a soak, as a supervisor would run them: who ends is started again, in place."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[3]
SESSION_S: Final = 10.0
GRACE_S: Final = 60.0
_AGAIN_S: Final = 1.0
_STOP_S: Final = 30.0
# SIGTERM by itself ends a process that has only begun to start.
ASKED_FOR: Final = (None, 0, -signal.SIGKILL, -signal.SIGTERM)

SETTINGS: Final = (
    f"worker.session_timeout_s={SESSION_S:g}",
    "worker.progress_timeout_s=60",
    # Ended runs are forgotten while the soak goes on, so tombstones are under fire too.
    f"deployment.grace_s={GRACE_S:g}",
)


class Worker:
    """One place in the fleet; the process in it comes and goes."""

    def __init__(self, name: str, command: list[str], folder: Path, *, guest: bool) -> None:
        self.name = name
        self.guest = guest
        self.wanted = True
        self.paused = False
        self.started = 0.0
        self._command = command
        self._log = folder / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Of the process, while it lives."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    @property
    def exit_code(self) -> int | None:
        """Of the process that ended here last."""
        return None if self._process is None else self._process.poll()

    def start(self) -> None:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("LOOPSTREAM_")}
        self.started = time.monotonic()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._log.parent,
                env=environment | {"PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def signal(self, number: signal.Signals) -> None:
        if self._process is not None and self.pid is not None:
            self._process.send_signal(number)

    def end(self) -> int | None:
        """SIGTERM and wait, SIGKILL if that does not help; the exit code."""
        self.signal(signal.SIGTERM)
        if self._process is None:
            return None
        try:
            return self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()


class Fleet:
    """Static members that restart in place, and guests that join and leave."""

    def __init__(self, bootstrap: str, prefix: str, folder: Path, members: int) -> None:
        self._bootstrap = bootstrap
        self._prefix = prefix
        self._folder = folder
        self._guests = 0
        self.exits: Counter[str] = Counter()
        """Ends that nobody asked for, by exit code."""
        self.starts = 0
        self.workers = [self._worker(f"w{n}", static=True) for n in range(members)]

    def tend(self) -> None:
        """Start who should run and does not; call it often."""
        for worker in list(self.workers):
            if worker.pid is not None or not worker.wanted:
                continue
            if worker.started and worker.exit_code not in ASKED_FOR:
                self.exits[f"exit {worker.exit_code}"] += 1
            if time.monotonic() - worker.started >= _AGAIN_S:
                worker.paused = False
                self.starts += 1
                worker.start()

    def victim(self, pick: float) -> Worker | None:
        """A live worker that is not paused."""
        live = [one for one in self.workers if one.pid is not None and not one.paused]
        return live[int(pick * len(live))] if live else None

    def join(self) -> Worker:
        """A guest: a dynamic member, so that its coming and going moves partitions."""
        self._guests += 1
        guest = self._worker(f"guest{self._guests}", static=False)
        self.workers.append(guest)
        self.tend()
        return guest

    def leave(self, guest: Worker) -> int | None:
        """A guest goes for good; its exit code."""
        guest.wanted = False
        self.workers.remove(guest)
        return guest.end()

    def settle(self) -> None:
        """Wake who is paused, and let guests go."""
        for worker in list(self.workers):
            if worker.paused:
                worker.signal(signal.SIGCONT)
                worker.paused = False
            if worker.guest:
                self.leave(worker)

    def close(self) -> list[int | None]:
        """Stop all, gracefully; their exit codes."""
        for worker in self.workers:
            worker.wanted = False
            worker.signal(signal.SIGCONT)
        for worker in self.workers:
            worker.signal(signal.SIGTERM)
        return [worker.end() for worker in self.workers]

    def kill(self) -> None:
        """End all at once."""
        for worker in self.workers:
            worker.kill()

    def _worker(self, name: str, *, static: bool) -> Worker:
        command = [sys.executable, "-m", "loopstream", "worker"]
        command += ["--bootstrap", self._bootstrap, "--prefix", self._prefix]
        command += [word for text in SETTINGS for word in ("--set", text)]
        if static:
            command += ["--instance-id", name]
        return Worker(name, command, self._folder, guest=not static)
