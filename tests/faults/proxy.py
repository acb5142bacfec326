"""A TCP proxy on loopback that delays, cuts or swallows what passes."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections import deque
from typing import Final, Self

_CHUNK: Final = 256 * 1024
_TICK_S: Final = 0.02


class Proxy:
    """Forwards every connection to ``upstream``, in one thread.

    ``delay_s``: bytes arrive that much later. ``swallow``: nothing passes, connections stay open
    (a blackhole). `cut` closes all connections at once.
    """

    def __init__(self) -> None:
        self.upstream: tuple[str, int] | None = None
        self.delay_s = 0.0
        self.swallow = False
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._peers: dict[socket.socket, socket.socket] = {}
        self._waiting: deque[tuple[float, socket.socket, bytes]] = deque()
        self._cut, self._halt = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._halt.set()
        self._thread.join()
        self._drop_all()
        self._selector.close()
        self._listener.close()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def lead_to(self, address: str) -> None:
        """Where connections are forwarded to from now on."""
        host, _, port = address.rpartition(":")
        self.upstream = host, int(port)

    def cut(self) -> None:
        """Close all connections; new ones pass."""
        self._cut.set()

    def _run(self) -> None:
        while not self._halt.is_set():
            if self._cut.is_set():
                self._cut.clear()
                self._drop_all()
            for key, _ in self._selector.select(_TICK_S):
                if key.fileobj is self._listener:
                    self._accept()
                elif isinstance(key.fileobj, socket.socket):
                    self._read(key.fileobj)
            self._pass_on()

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        if self.upstream is None:
            client.close()
            return
        try:
            server = socket.create_connection(self.upstream, timeout=2)
        except OSError:
            client.close()
            return
        self.connections += 1
        for one, other in ((client, server), (server, client)):
            one.settimeout(10)
            self._peers[one] = other
            self._selector.register(one, selectors.EVENT_READ)

    def _read(self, one: socket.socket) -> None:
        if self.swallow:
            time.sleep(_TICK_S)  # unread bytes stay with the kernel: as if the peer were gone
            return
        other = self._peers.get(one)
        if other is None:
            return
        try:
            data = one.recv(_CHUNK)
        except OSError:
            data = b""
        if data:
            self._waiting.append((time.monotonic() + self.delay_s, other, data))
        else:
            self._drop(one)

    def _pass_on(self) -> None:
        while self._waiting and self._waiting[0][0] <= time.monotonic() and not self.swallow:
            _, to, data = self._waiting.popleft()
            try:
                to.sendall(data)
            except OSError:
                self._drop(to)

    def _drop(self, one: socket.socket) -> None:
        for end in (one, self._peers.pop(one, None)):
            if end is not None:
                self._peers.pop(end, None)
                with contextlib.suppress(KeyError, ValueError):
                    self._selector.unregister(end)
                end.close()

    def _drop_all(self) -> None:
        for one in list(self._peers):
            self._drop(one)
        self._waiting.clear()
