"""Is the broker up? And if not, what do its logs say?"""

from __future__ import annotations

import socket
from pathlib import Path

from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from loopstream.errors import BrokerError

_TAIL_BYTES = 64 * 1024
_CONNECT_SECONDS = 1.0
_METADATA_MS = 5000

_FRAME = "\tat "

_HINTS = (
    ("Address already in use", "Another process took the port: give port 0, or a free one."),
    ("No space left on device", "Free some disk space."),
    ("OutOfMemoryError", "Raise heap_mb."),
    ("UnsupportedClassVersionError", "Use Java 17 or newer."),
    ("ConfigException", "A property given to the broker is wrong; the log above names it."),
    ("Invalid cluster.id", "The data folder belongs to another cluster; use another one."),
)


def accepts(host: str, port: int) -> bool:
    """Whether something listens on the port."""
    try:
        socket.create_connection((host, port), timeout=_CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


def serves(bootstrap: str) -> bool:
    """Whether the broker answers ApiVersions and metadata, and counts itself as alive."""
    try:
        admin = KafkaAdminClient(bootstrap_servers=bootstrap, bootstrap_timeout_ms=_METADATA_MS)
    except KafkaError:
        return False
    try:
        # Only brokers that the controller has unfenced are in the metadata.
        return bool(admin.describe_cluster()["brokers"])
    except KafkaError:
        return False
    finally:
        admin.close()


def failure(reason: str, logs: tuple[Path, ...]) -> BrokerError:
    """An error that shows the end of the logs and what to do about it."""
    lines = [line for log in logs for line in tail(log)]
    text = "\n".join(f"  {line}" for line in lines)
    hint = next((hint for sign, hint in _HINTS if sign in text), f"Read {logs[-1]}.")
    message = f"{reason}\n{text}\n" if lines else f"{reason} It logged nothing."
    return BrokerError(message, hint=hint)


def tail(path: Path, count: int = 12) -> list[str]:
    """The last lines within the last 64 KiB of a log, without Java's stack frames.

    Empty if the file can't be read.
    """
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, 2)
            stream.seek(max(0, size - _TAIL_BYTES))
            lines = stream.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    return [line for line in lines if not line.startswith(_FRAME)][-count:]
