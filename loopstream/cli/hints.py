"""Commands within hints, completed with what the command line said of brokers and prefix.

Hints are written far from the command line, some of them in the SDK: they name a command, and this
is the one place where it becomes one that can be copied.
"""

from __future__ import annotations

import re
import shlex
from contextvars import ContextVar
from typing import Final

GIVEN: ContextVar[tuple[str, ...]] = ContextVar("GIVEN", default=())
"""Options of the present command line that other commands need as well."""

# Commands that ask Kafka, with as much of their arguments as hints give.
_COMMAND: Final = re.compile(
    r"loopstream (?:topics (?:create|show)|runs list|worker|doctor|verdicts|config show|"
    r"config push(?: --force)?(?: FILE)?|(?:explain|report) RUN|export FOLDER)"
)


def given(bootstrap: str | None, prefix: str | None, file: object = None) -> None:
    """Take note of what the command line says."""
    options = (("--bootstrap", bootstrap), ("--prefix", prefix), ("--config", file))
    GIVEN.set(tuple(word for name, value in options if value for word in (name, str(value))))


def completed(hint: str) -> str:
    """A hint whose commands go where the present one went."""
    more = shlex.join(GIVEN.get())
    return _COMMAND.sub(lambda found: f"{found[0]} {more}", hint) if more else hint
