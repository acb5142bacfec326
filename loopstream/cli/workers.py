"""Worker processes of ``loopstream up``: started, restarted when they ask for it, stopped."""

from __future__ import annotations

import subprocess
import sys
import time
from types import TracebackType
from typing import Final, Self

from loopstream.cli.console import say
from loopstream.errors import EXIT_RESTART, LoopstreamError

_STOP_S: Final = 15.0
# A worker that keeps giving up has a cause that starting it again does not remove.
_MAX_RESTARTS: Final = 5
_WITHIN_S: Final = 300.0


class WorkerEndedError(LoopstreamError):
    """A worker ended and is not started again."""

    code = "worker_ended"

    def __init__(self, exit_code: int) -> None:
        super().__init__(
            f"a worker ended with exit code {exit_code}.", hint="Its own message stands above."
        )
        self.exit_code = exit_code  # type: ignore[misc]


class Workers:
    """A few ``loopstream worker`` processes; a context manager.

    Args:
        count: how many.
        arguments: of the verb, the same for all.
    """

    def __init__(self, count: int, arguments: list[str]) -> None:
        self._command = [sys.executable, "-m", "loopstream", "worker", *arguments]
        self._count = count
        self._processes: list[subprocess.Popen[bytes]] = []
        self._restarts: list[float] = []

    def __enter__(self) -> Self:
        self._processes = [self._start() for _ in range(self._count)]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for process in self._processes:
            process.terminate()
        deadline = time.monotonic() + _STOP_S
        for process in self._processes:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def look_after(self) -> None:
        """Start again what gave up.

        Raises:
            WorkerEndedError: a worker ended for another reason, or too often.
        """
        for at, process in enumerate(self._processes):
            code = process.poll()
            if code is None:
                continue
            now = time.monotonic()
            self._restarts = [then for then in self._restarts if now - then < _WITHIN_S]
            if code != EXIT_RESTART or len(self._restarts) >= _MAX_RESTARTS:
                raise WorkerEndedError(code)
            say(f"worker {process.pid} gave up (exit code {code}); it is started again")
            self._restarts.append(now)
            self._processes[at] = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        # A session of its own: Ctrl-C reaches us alone, and we stop the workers in order.
        return subprocess.Popen(self._command, start_new_session=True)  # noqa: S603
