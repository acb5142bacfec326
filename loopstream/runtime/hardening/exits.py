"""The hard exit: a worker that can't keep its promises ends at once, without a commit.

Answers: a graceful stop after a failed send hangs in ``flush`` (20 s and more), an agent's
exception is acked and swallowed (faust-streaming#315, #527), a stalled commit is only logged
(faust-streaming#175, #523). The supervisor (systemd, Kubernetes, ``loopstream up``) starts it
again; the next owner replays from the last commit.

Exit codes: 70 for everything after which a restart is right (`EXIT_RESTART`); an error of
loopstream's own tree brings its code (3 settings, 4 Kafka unreachable or topics missing).
"""

from __future__ import annotations

import logging
import os
import sys
from typing import NoReturn

from loopstream.errors import EXIT_RESTART, LoopstreamError

log = logging.getLogger(__name__)


def exit_code_of(reason: BaseException) -> int:
    """The process exit code for what went wrong."""
    return reason.exit_code if isinstance(reason, LoopstreamError) else EXIT_RESTART


def leave(reason: BaseException) -> NoReturn:
    """Say why on stderr and end the process now; nothing is flushed to Kafka, nothing committed."""
    code = exit_code_of(reason)
    text = str(reason) if isinstance(reason, LoopstreamError) else repr(reason)
    if code == EXIT_RESTART:
        text = f"worker gives up, nothing more is committed (exit {code}): {text}"
    log.critical("%s", text, exc_info=reason if log.isEnabledFor(logging.DEBUG) else None)
    try:
        sys.stderr.write(f"loopstream: {text}\n")
        sys.stderr.flush()
    finally:
        os._exit(code)
