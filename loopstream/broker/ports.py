"""Loopback ports that stay ours while the broker is down."""

from __future__ import annotations

import errno
import socket
import sys

from loopstream.errors import BrokerError

HOST = "127.0.0.1"


class PortHold:
    """A port on loopback, chosen by the OS (``port=0``) or given, and kept until `close`.

    On Linux the port is kept by a socket that is bound but never listens. The broker, which sets
    SO_REUSEADDR as every Java server does, can still bind and listen there. So no other process
    is handed the port between our choice and the broker's start or while a killed broker is down,
    and no client of the dead broker can connect to itself (a TCP socket that happens to get the
    port it dials as its own). Elsewhere the port is only looked up.

    Raises:
        BrokerError: the given port is taken.
    """

    def __init__(self, port: int = 0) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((HOST, port))
        except (OSError, OverflowError) as error:
            self._socket.close()
            raise _refused(port, error) from error
        self.port: int = self._socket.getsockname()[1]
        if sys.platform != "linux":
            self._socket.close()

    def close(self) -> None:
        """Give the port back."""
        self._socket.close()


def hold_preferred(port: int) -> PortHold:
    """Hold ``port`` if it is free, else one that the OS picks."""
    try:
        return PortHold(port)
    except BrokerError:
        return PortHold()


def _refused(port: int, error: OSError | OverflowError) -> BrokerError:
    taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
    return BrokerError(
        f"port {port} is in use." if taken else f"port {port} is out of range or barred.",
        where=f"{HOST}:{port}",
        hint="Stop the process that listens there, or give port 0 to let the OS pick one.",
    )
