"""A child process that does not outlive us."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from loopstream.broker import _launch
from loopstream.errors import BrokerError


class ChildProcess:
    """Runs a command in a session of its own, its output in a file, until it ends or we do.

    On Linux the kernel sends it SIGKILL when its parent dies (PR_SET_PDEATHSIG, set by `_launch`
    just before the exec). The kernel means the parent *thread*: so one thread starts the child and
    lives as long as it does. On other systems only an orderly exit ends it (see
    `EmbeddedKafka`, which registers with atexit). The own session keeps a terminal's Ctrl-C away
    from the child; who started it decides when it stops.

    Args:
        argv: the command.
        output: file for stdout and stderr, truncated.
        inherit: file descriptors that the child keeps open.
    """

    def __init__(self, argv: Sequence[str], output: Path, inherit: Sequence[int] = ()) -> None:
        self._argv = [*_guard(), *argv]
        self._output = output
        self._inherit = tuple(inherit)
        self._popen: subprocess.Popen[bytes] | None = None
        self._error: OSError | None = None
        self._started = threading.Event()
        self._ended = threading.Event()
        threading.Thread(target=self._run, name="kafka-process", daemon=True).start()
        self._started.wait()
        if self._error is not None:
            raise BrokerError(f"{argv[0]} can't be started: {self._error}.") from self._error

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._popen.pid if self._popen and not self._ended.is_set() else None

    @property
    def returncode(self) -> int | None:
        """Exit status, negative for a signal; None while it runs."""
        return self._popen.returncode if self._popen and self._ended.is_set() else None

    def wait(self, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds; whether it has ended."""
        return self._ended.wait(timeout)

    def end(self, grace: float) -> bool:
        """SIGTERM, and SIGKILL after ``grace`` seconds; whether SIGTERM was enough."""
        self._signal(signal.SIGTERM)
        if self.wait(grace):
            return True
        self.kill()
        return False

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self._signal(signal.SIGKILL)
        self._ended.wait()

    def _signal(self, number: signal.Signals) -> None:
        if self._popen and not self._ended.is_set():
            self._popen.send_signal(number)

    def _run(self) -> None:
        try:
            with self._output.open("wb") as output:
                self._popen = subprocess.Popen(  # noqa: S603 - our own command, no shell
                    self._argv,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    pass_fds=self._inherit,
                )
        except OSError as error:
            self._error = error
            return
        finally:
            self._started.set()
        self._popen.wait()
        self._ended.set()


def _guard() -> list[str]:
    if sys.platform != "linux" or not sys.executable:
        return []
    return [sys.executable, "-I", "-S", _launch.__file__, str(os.getpid())]
