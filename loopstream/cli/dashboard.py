"""The dashboard of ``loopstream up``: a process of its own, beside the workers."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING, Final

from loopstream.cli.console import say

if TYPE_CHECKING:
    from loopstream.config import Settings

_NEEDS: Final = ("aiohttp", "jinja2")
_STOP_S: Final = 10.0


@contextmanager
def dashboard(settings: Settings, arguments: list[str]) -> Iterator[None]:
    """Serve the dashboard meanwhile; its address is told on stderr as soon as it answers.

    If its port is taken the system picks another. Without a token in the settings one is made for
    this time, and told on stderr: whoever reads the terminal may act.

    Args:
        arguments: of the verb, as for the workers.
    """
    if any(find_spec(name) is None for name in _NEEDS):
        say("no dashboard: pip install 'loopstream[web]' brings it")
        yield
        return
    environment, token = dict(os.environ), None
    if settings.web.token is None and settings.web.token_file is None:
        token = secrets.token_urlsafe(12)
        environment["LOOPSTREAM_WEB__TOKEN"] = token
    port = settings.web.port if _is_free(settings.web.host, settings.web.port) else 0
    command = [sys.executable, "-m", "loopstream", "web", *arguments, "--port", str(port)]
    process = subprocess.Popen(  # noqa: S603 - our own command
        command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    if process.stdout is not None:
        teller = threading.Thread(target=_tell, args=(process.stdout, token), daemon=True)
        teller.start()
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _tell(out: IO[str], token: str | None) -> None:
    with out:
        for line in out:
            act = "" if token is None else f" (to act there sign in with {token})"
            say(f"dashboard at {line.strip()}{act}")


def _is_free(host: str, port: int) -> bool:
    try:
        with socket.create_server((host, port)):
            return True
    except OSError:
        return False
