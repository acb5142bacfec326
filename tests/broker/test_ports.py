from __future__ import annotations

import socket
import sys

import pytest

from loopstream.broker.ports import PortHold, hold_preferred
from loopstream.errors import BrokerError


def listen(port: int) -> socket.socket:
    """As a Java server does: SO_REUSEADDR set."""
    return socket.create_server(("127.0.0.1", port))


def test_a_taken_port_is_refused_with_advice() -> None:
    with listen(0) as server:
        port = server.getsockname()[1]
        with pytest.raises(BrokerError, match=f"port {port} is in use") as caught:
            PortHold(port)
    assert "port 0" in str(caught.value)


def test_a_port_out_of_range_is_refused() -> None:
    with pytest.raises(BrokerError, match="out of range"):
        PortHold(70_000)


def test_a_taken_port_is_only_a_preference() -> None:
    with listen(0) as server:
        port = server.getsockname()[1]
        hold = hold_preferred(port)
        assert hold.port != port
        hold.close()


@pytest.mark.skipif(sys.platform != "linux", reason="the port is only looked up elsewhere")
def test_a_held_port_serves_the_broker_and_no_one_elses_client() -> None:
    hold = PortHold()
    for _ in range(3):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", hold.port), timeout=5)
        with (
            listen(hold.port) as server,
            socket.create_connection(("127.0.0.1", hold.port), timeout=5),
        ):
            server.accept()[0].close()
    with pytest.raises(OSError, match="in use"), socket.socket() as plain:
        plain.bind(("127.0.0.1", hold.port))
    hold.close()
