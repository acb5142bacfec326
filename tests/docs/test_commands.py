"""Every command that the documentation shows is run, page by page, as a reader would."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopstream.demo.stage import answers
from loopstream.wire.connection import Connection
from tests.docs.pages import Command, File, Page, pages

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

# Made of the help texts: names and options are checked by test_site, each verb runs in tests/cli.
HELP = "docs/reference/cli.md"

NOT_RUN = {
    r"make (install|demo|test|test-fast)": "run by whoever runs these tests, or longer than they",
    r"make (soak|fuzz)": "longer than these tests; tests/faults and tests/fuzz run short ones",
    r"loopstream (explain|replay|diff|report|export|sql|label|tune|tail)\b": (
        "they ask for an incident of the reader's own; tests/replay runs each"
    ),
    r"source ": "the shell's business",
    r"docker ": "no Docker daemon is at hand",
    r"kubectl (apply|create)": "no cluster is at hand",
    r"kubectl kustomize": "run by tests/deploy",
    r"loopstream up --demo": "run by tests/e2e",
}
FOREVER = re.compile(r"loopstream (worker|up|broker|web)\b|--follow|--watch")
STARTS_TOPICS = ("loopstream topics create", "loopstream up")
SAYS = {
    "python agent.py": ("warned", "refused"),
    "loopstream verdicts --run my-first-run": ("warn", "block", "generic_repeat"),
    "loopstream runs show my-first-run": ("ended", "block", "generic_repeat"),
}
# A reader has these; a page that shows what is in them brings its own.
FILES = {
    "agents.json": {"tools": {"loopDetection": {"enabled": True}}},
}
PATIENCE_S = 60.0
LOOK_S = 3.0

RUNNABLE = [
    page
    for page in pages()
    if page.name != HELP and any(isinstance(s, Command) for s in page.steps())
]


class Reader:
    """Follows a page: writes its files, runs its commands in one folder."""

    def __init__(self, folder: Path, bootstrap: str, prefix: str) -> None:
        self._folder = folder
        self._bootstrap = bootstrap
        self._prefix = prefix
        own = {
            name: text for name, text in os.environ.items() if not name.startswith("LOOPSTREAM_")
        }
        tools = f"{Path(sys.executable).parent}{os.pathsep}{own['PATH']}"
        self._env = own | {
            "PATH": tools,
            "HOME": str(folder),
            "PYTHONUNBUFFERED": "1",
            "LOOPSTREAM_BOOTSTRAP": bootstrap,
            "LOOPSTREAM_PREFIX": prefix,
            "LOOPSTREAM_PARTITIONS": "2",
            "LOOPSTREAM_WEB__PORT": "0",
        }
        self._running: list[tuple[str, subprocess.Popen[bytes]]] = []
        for name, value in FILES.items():
            self.write(File(name, json.dumps(value)))

    def write(self, file: File) -> None:
        (self._folder / file.name).write_text(file.text)

    def follow(self, command: Command) -> None:
        text = command.text.replace("kafka:9092", self._bootstrap)
        if any(re.match(pattern, text) for pattern in NOT_RUN):
            return
        if text.startswith("export "):
            self._export(text)
        elif FOREVER.search(text):
            self._start(text)
        else:
            self._run(text)

    def prepare(self) -> None:
        """What a page takes for granted that does not begin from nothing."""
        self._run("loopstream topics create")
        self._run("loopstream config push agents.json")

    def close(self) -> None:
        for text, process in self._running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
            assert process.wait(PATIENCE_S) in {0, 130, -signal.SIGINT}, text

    def kill(self) -> None:
        for _, process in self._running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _export(self, text: str) -> None:
        name, _, value = text.removeprefix("export ").partition("=")
        if name != "LOOPSTREAM_BOOTSTRAP":
            self._env[name] = value

    def _start(self, text: str) -> None:
        """A command that ends with Ctrl-C; a worker is waited for until it answers."""
        log = (self._folder / f"{len(self._running)}.log").open("wb")
        process = subprocess.Popen(
            ["bash", "-c", f"exec env {text}"],
            cwd=self._folder,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        log.close()
        self._running.append((text, process))
        if re.search(r"loopstream (worker|up)\b", text):
            there = answers(Connection(bootstrap=(self._bootstrap,)), self._prefix, PATIENCE_S)
            assert there, f"{text}\n{Path(log.name).read_text()}"
        else:
            time.sleep(LOOK_S)
        assert process.poll() is None, f"{text}\n{Path(log.name).read_text()}"

    def _run(self, text: str) -> None:
        """Run a command to its end; what is read at checkpoints may take some seconds."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            done = subprocess.run(
                ["bash", "-c", text],
                cwd=self._folder,
                env=self._env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
            said = done.stdout + done.stderr
            if done.returncode == 0 and all(word in said for word in SAYS.get(text, ())):
                return
            assert time.monotonic() < deadline, f"$ {text}\nexit {done.returncode}\n{said}"
            assert text in SAYS, f"$ {text}\nexit {done.returncode}\n{said}"
            time.sleep(0.5)


@pytest.fixture
def reader(tmp_path: Path, bootstrap: str, prefix: str) -> Iterator[Reader]:
    reader = Reader(tmp_path, bootstrap, prefix)
    yield reader
    reader.kill()


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.name)
def test_the_commands_of_a_page_work(page: Page, reader: Reader) -> None:
    steps = list(page.steps())
    begins = any(
        isinstance(step, Command) and step.text.startswith(STARTS_TOPICS) for step in steps
    )
    if not begins:
        reader.prepare()
    for step in steps:
        if isinstance(step, File):
            reader.write(step)
        else:
            reader.follow(step)
    reader.close()


def test_no_exception_is_left_over() -> None:
    """Each reason for not running a command is needed by some page."""
    texts = [step.text for page in pages() for step in page.steps() if isinstance(step, Command)]
    for pattern in NOT_RUN:
        assert any(re.match(pattern, text) for text in texts), pattern
