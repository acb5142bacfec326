"""Verbs whose output goes down a pipe."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import ParamSpec

import typer

P = ParamSpec("P")


def piped(verb: Callable[P, None]) -> Callable[P, None]:
    """A verb for which a reader that leaves early (``| head``) is no error: it ends with 0."""

    @functools.wraps(verb)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            verb(*args, **kwargs)
            sys.stdout.flush()
        except BrokenPipeError:
            # What is still buffered would raise again when the interpreter ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit from None

    return run
