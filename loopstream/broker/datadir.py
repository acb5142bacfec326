"""The data folder: its lock, and the ports that a stopped broker had."""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import suppress
from pathlib import Path

from loopstream.errors import BrokerError

_MAX_STATE_BYTES = 64 * 1024


class DirLock:
    """An exclusive lock on a data folder, held by us and by the broker that inherits it.

    The kernel drops it with the last process that has it open, so a dead broker leaves none
    behind, and one that outlived its parent is still seen.

    Raises:
        BrokerError: another broker uses the folder.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "broker.lock"
        self.fileno = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self.fileno, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.pread(self.fileno, 32, 0).decode("ascii", "replace").strip()
            os.close(self.fileno)
            raise BrokerError(
                f"another broker{f' (process {owner})' if owner else ''} uses this data folder.",
                where=str(folder),
                hint="Stop it first, or give this one a data folder of its own.",
            ) from error

    def note_pid(self, pid: int) -> None:
        """Leave the broker's process id for the message above."""
        os.ftruncate(self.fileno, 0)
        os.pwrite(self.fileno, str(pid).encode(), 0)

    def release(self) -> None:
        """Let go. The lock ends when the broker that inherited it has ended too."""
        os.close(self.fileno)


def load_ports(folder: Path) -> dict[str, int]:
    """Listener name to the port it had last; empty if unknown."""
    with suppress(OSError, ValueError), _state_path(folder).open("rb") as stream:
        state = json.loads(stream.read(_MAX_STATE_BYTES))
        if isinstance(state, dict):
            return {str(name): port for name, port in state.items() if isinstance(port, int)}
    return {}


def save_ports(folder: Path, ports: dict[str, int]) -> None:
    """Keep the ports for the next start; replaced at once or not at all."""
    new = _state_path(folder).with_suffix(".new")
    new.write_text(json.dumps(ports, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    new.replace(_state_path(folder))


def _state_path(folder: Path) -> Path:
    return folder / "ports.json"
