"""The HTTP port of a worker: ``/metrics``, ``/livez``, ``/readyz``, and nothing else.

A thread of its own answers, so that a stuck event loop is seen and not waited for.
"""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, cast

from prometheus_client import CONTENT_TYPE_LATEST

from loopstream.errors import SettingsError
from loopstream.runtime.health import Answer, Health
from loopstream.runtime.metrics import Exposition

TEXT: Final = "text/plain; charset=utf-8"
TIMEOUT_S: Final = 5.0


class Endpoint(ThreadingHTTPServer):
    """Serves until it is closed.

    Args:
        host: address to listen on.
        port: 0: the system picks one, see `port`.
        metrics: what ``/metrics`` says.
        health: what the other two say.

    Raises:
        SettingsError: the address can't be listened on.
    """

    daemon_threads = True

    def __init__(self, host: str, port: int, metrics: Exposition, health: Health) -> None:
        self.metrics = metrics
        self.health = health
        try:
            super().__init__((host, port), _Handler)
        except OSError as error:
            hint = "Choose another with --metrics-port, or 0 for any."
            message = f"can't listen there: {error.strerror}."
            where = f"worker.metrics_port {host}:{port}"
            raise SettingsError(message, where=where, hint=hint) from None

    @property
    def port(self) -> int:
        """The port listened on."""
        return int(self.server_address[1])

    def start(self) -> None:
        """Answer from now on."""
        thread = threading.Thread(target=self.serve_forever, name="metrics", daemon=True)
        thread.start()

    def close(self) -> None:
        """Answer no more."""
        self.shutdown()
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away in the middle is no news."""


class _Handler(BaseHTTPRequestHandler):
    timeout = TIMEOUT_S
    server_version = "loopstream"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer one request."""
        endpoint = cast("Endpoint", self.server)
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._answer(200, CONTENT_TYPE_LATEST, endpoint.metrics.text())
        elif path == "/livez":
            self._tell(endpoint.health.live())
        elif path == "/readyz":
            self._tell(endpoint.health.ready())
        else:
            self._answer(404, TEXT, b"/metrics /livez /readyz\n")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Requests are not logged."""

    def _tell(self, answer: Answer) -> None:
        self._answer(200 if answer.ok else 503, TEXT, f"{answer.reason}\n".encode())

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
