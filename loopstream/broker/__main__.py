"""``python -m loopstream.broker --data-dir DIR``: a broker in the foreground.

Prints ``host:port`` on stdout when it serves, and runs until SIGINT or SIGTERM.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from loopstream.broker.embedded import EmbeddedKafka
from loopstream.broker.say import say
from loopstream.broker.tools import find_runtime
from loopstream.errors import EXIT_OK, BrokerError, LoopstreamError

_CHECK_SECONDS = 0.5


def main(argv: Sequence[str] | None = None) -> int:
    """Run until told to stop; returns the exit code."""
    options = _parser().parse_args(argv)
    try:
        return _fetch() if options.fetch_only else _serve(options)
    except LoopstreamError as error:
        say(str(error))
        return error.exit_code


def _fetch() -> int:
    say(f"{len(find_runtime().jars)} jars of Apache Kafka are in the cache")
    return EXIT_OK


def _serve(options: argparse.Namespace) -> int:
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    broker = EmbeddedKafka(
        options.data_dir,
        port=options.port,
        heap_mb=options.heap_mb,
        properties=dict(options.property),
    )
    with broker:
        sys.stdout.write(f"{broker.bootstrap}\n")
        sys.stdout.flush()
        _run(broker, stop)
    return EXIT_OK


def _run(broker: EmbeddedKafka, stop: threading.Event) -> None:
    while not stop.wait(_CHECK_SECONDS):
        if broker.pid is None:
            raise BrokerError("the broker ended by itself.", hint=f"Read {broker.log_path}.")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m loopstream.broker", description=__doc__)
    parser.add_argument("--data-dir", type=Path, help="default: a temporary folder")
    parser.add_argument("--port", type=int, default=0, help="default: any free port")
    parser.add_argument("--heap-mb", type=int, default=384)
    parser.add_argument("--property", action="append", default=[], type=_pair, metavar="NAME=VALUE")
    parser.add_argument("--fetch-only", action="store_true", help="fill the jar cache and end")
    return parser


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError("expected NAME=VALUE")
    return name, value


if __name__ == "__main__":
    sys.exit(main())
