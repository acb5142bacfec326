"""``loopstream broker``: the embedded broker in the foreground."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loopstream.cli.console import print_line, say
from loopstream.errors import BrokerError


def broker(
    port: Annotated[int, typer.Option("--port", help="Port on the loopback; 0: any.")] = 0,
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", help="Keeps the topics; default: a new folder.")
    ] = None,
    heap_mb: Annotated[int, typer.Option("--heap-mb", min=128, help="Java heap.")] = 384,
) -> None:
    """Run a real single-node Apache Kafka in the foreground, without Docker, until Ctrl-C.

    Prints host:port on stdout as soon as it serves. For trying things out: it listens on the
    loopback interface only. The jars are fetched once, Java is found or brought along.

    ```console
    $ loopstream broker --port 9092 --data-dir ~/.loopstream/kafka
    $ export LOOPSTREAM_BOOTSTRAP=127.0.0.1:9092
    ```
    """
    import signal
    import threading

    from loopstream.broker import EmbeddedKafka

    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with EmbeddedKafka(data_dir, port=port, heap_mb=heap_mb) as server:
        print_line(server.bootstrap)
        say(f"log: {server.log_path}; stop with Ctrl-C")
        while not stop.wait(0.5):
            if server.pid is None:
                raise BrokerError("the broker ended by itself.", hint=f"Read {server.log_path}.")
