"""A real Apache Kafka broker (KRaft, one node) as a child process."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess
from types import TracebackType
from typing import Self

from loopstream.broker import config, readiness
from loopstream.broker.config import CONTROLLER_LISTENER, MAIN_LISTENER, Listener
from loopstream.broker.datadir import DirLock, load_ports, save_ports
from loopstream.broker.ports import HOST, PortHold, hold_preferred
from loopstream.broker.process import ChildProcess
from loopstream.broker.tools import Runtime, find_runtime, run_tool
from loopstream.errors import BrokerError

_POLL_SECONDS = 0.05


class EmbeddedKafka:
    """Starts and stops the broker; a context manager.

    The main listener is PLAINTEXT on loopback. Topics are not created on demand. The broker ends
    with this process: by `stop`, at interpreter exit, and on Linux also when we are killed.

    Args:
        data_dir: kept between runs. None: a temporary folder, removed by `stop`.
        port: of the main listener. 0 means the port that the data folder had last, else one that
            the OS picks.
        heap_mb: the JVM's heap limit in MiB; the process takes about 250 MiB more at most.
        properties: more server properties. ``listeners``, ``advertised.listeners`` and
            ``listener.security.protocol.map`` are appended to ours, others replace our defaults.
        listeners: more addresses, for example with SASL or behind a proxy; see `address`.
        advertised_port: what clients of the main listener are told to connect to, if not its own
            port.

    Raises:
        BrokerError: two listeners share a name, or one has a name of ours.
    """

    def __init__(
        self,
        data_dir: Path | None = None,
        *,
        port: int = 0,
        heap_mb: int = 384,
        properties: Mapping[str, str] | None = None,
        listeners: Sequence[Listener] = (),
        advertised_port: int | None = None,
    ) -> None:
        self._given_dir = data_dir
        self._heap_mb = heap_mb
        self._properties = dict(properties or {})
        main = Listener(MAIN_LISTENER, port=port, advertised_port=advertised_port)
        self._listeners = (main, *listeners)
        config.check_names(self._listeners)
        self._dir: Path | None = None
        self._holds: dict[str, PortHold] = {}
        self._lock: DirLock | None = None
        self._process: ChildProcess | None = None
        self._runtime: Runtime | None = None
        self._owner = os.getpid()

    @property
    def data_dir(self) -> Path:
        """The data folder; known once started."""
        if self._dir is None:
            raise BrokerError("the embedded broker was not started.")
        return self._dir

    @property
    def log_path(self) -> Path:
        """Kafka's own log."""
        return self._log_dir / "server.log"

    @property
    def bootstrap(self) -> str:
        """``host:port`` of the main listener; known once started, the same after a restart."""
        return self.address(MAIN_LISTENER)

    @property
    def pid(self) -> int | None:
        """The broker's process id, or None if it does not run."""
        return self._process.pid if self._process else None

    def address(self, listener: str) -> str:
        """``host:port`` that a listener is bound to (not the advertised one)."""
        if listener not in self._holds:
            raise BrokerError(f"the embedded broker has no listener {listener}, or never started.")
        return f"{HOST}:{self._holds[listener].port}"

    def start(self, timeout: float = 60) -> None:
        """Start and wait until the broker serves; does nothing if it runs.

        The same call starts it again after `kill` or a crash, on the same ports and data.

        Args:
            timeout: seconds for formatting and starting. Fetching jars for the first time is not
                counted.

        Raises:
            BrokerError: Java, jars, port or data folder are not to be had, or the broker ended or
                did not serve in time; the message has the end of its log.
        """
        if self.pid is not None:
            return
        self._runtime = self._runtime or find_runtime()
        deadline = time.monotonic() + timeout
        try:
            lock = self._prepare()
            self._format(timeout)
            process = self._launch(self._runtime, lock)
            self._await_ready(process, deadline, timeout)
        except BaseException:
            self.stop(timeout=0)
            raise

    def stop(self, timeout: float = 15) -> None:
        """SIGTERM, then SIGKILL after ``timeout`` seconds; frees ports and a temporary folder."""
        atexit.unregister(self._at_exit)
        if self._process:
            self._process.end(timeout) if timeout > 0 else self._process.kill()
            self._process = None
        self._unlock()
        for hold in self._holds.values():
            hold.close()
        self._holds = {}
        if self._given_dir is None and self._dir is not None:
            shutil.rmtree(self._dir, ignore_errors=True)
            self._dir = None

    def kill(self) -> None:
        """SIGKILL. Data and ports are kept for the next `start`."""
        if self._process:
            self._process.kill()
        self._unlock()

    def run_tool(
        self, main_class: str, args: Sequence[str] = (), *, stdin: str = "", timeout: float = 120
    ) -> CompletedProcess[str]:
        """Run a Kafka tool with this broker's Java and jars; see `tools.run_tool`."""
        return run_tool(main_class, args, runtime=self._runtime, stdin=stdin, timeout=timeout)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def _log_dir(self) -> Path:
        return self.data_dir / "logs"

    @property
    def _kafka_dir(self) -> Path:
        return self.data_dir / "kafka"

    @property
    def _console_path(self) -> Path:
        return self._log_dir / "console.log"

    def _prepare(self) -> DirLock:
        self._dir = self._dir or self._make_dir()
        self._lock = self._lock or DirLock(self._dir)
        if not self._holds:
            self._hold_ports(self._dir)
        listeners = [replace(one, port=self._holds[one.name].port) for one in self._listeners]
        controller = self._holds[CONTROLLER_LISTENER].port
        config.write_files(
            self._dir,
            config.server_properties(self._kafka_dir, listeners, controller, self._properties),
        )
        return self._lock

    def _make_dir(self) -> Path:
        if self._given_dir is None:
            folder = Path(tempfile.mkdtemp(prefix="loopstream-kafka-"))
        else:
            folder = self._given_dir.absolute()
        try:
            (folder / "logs").mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise BrokerError(
                f"the data folder can't be made: {error}.",
                where=str(folder),
                hint="Name a folder that you may write to.",
            ) from error
        return folder

    def _hold_ports(self, folder: Path) -> None:
        last = load_ports(folder)
        for one in (*self._listeners, Listener(CONTROLLER_LISTENER)):
            given = PortHold(one.port) if one.port else hold_preferred(last.get(one.name, 0))
            self._holds[one.name] = given
        save_ports(folder, {name: hold.port for name, hold in self._holds.items()})

    def _format(self, timeout: float) -> None:
        if (self._kafka_dir / "meta.properties").exists():
            return
        cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        server = str(config.properties_path(self.data_dir))
        # A cluster id must not start with "-", or the tool takes it for an option.
        args = ["format", "--cluster-id", f"k{cluster_id[1:]}", "--config", server]
        result = self.run_tool("kafka.tools.StorageTool", args, timeout=timeout)
        if result.returncode:
            self._console_path.write_text(result.stdout + result.stderr, encoding="utf-8")
            raise readiness.failure("the data folder can't be formatted.", (self._console_path,))

    def _launch(self, runtime: Runtime, lock: DirLock) -> ChildProcess:
        options = [
            f"-Xmx{self._heap_mb}m",
            "-XX:+ExitOnOutOfMemoryError",
            "-Djava.awt.headless=true",
            f"-Dkafka.logs.dir={self._log_dir}",
            f"-Dlog4j2.configurationFile={config.log4j_path(self.data_dir).as_uri()}",
        ]
        server = str(config.properties_path(self.data_dir))
        command = runtime.command(options, "kafka.Kafka", [server])
        process = self._process = ChildProcess(command, self._console_path, [lock.fileno])
        atexit.register(self._at_exit)
        if process.pid is not None:
            lock.note_pid(process.pid)
        return process

    def _await_ready(self, process: ChildProcess, deadline: float, timeout: float) -> None:
        port = self._holds[MAIN_LISTENER].port
        logs = (self._console_path, self.log_path)
        while not (readiness.accepts(HOST, port) and readiness.serves(self.bootstrap)):
            if process.wait(_POLL_SECONDS):
                status = process.returncode
                raise readiness.failure(f"the broker ended with status {status}:", logs)
            if time.monotonic() > deadline:
                raise readiness.failure(f"the broker does not serve after {timeout:g} s:", logs)

    def _unlock(self) -> None:
        if self._lock:
            self._lock.release()
            self._lock = None

    def _at_exit(self) -> None:
        # A forked child inherits the registration, but not the broker.
        if os.getpid() == self._owner:
            self.stop()
