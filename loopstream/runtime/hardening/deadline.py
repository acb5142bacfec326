"""A stop on request must end, even if a library waits for something that never comes.

Answers: shutdown hangs in Faust's wait for streams and in the client's flush (robinhood/faust#586,
CHECKPOINTS.md); 10 s are promised.
"""

from __future__ import annotations

import os
import threading

from loopstream.errors import EXIT_OK, EXIT_RESTART


class StopDeadline:
    """Ends the process when a stop takes too long; cleanly, if everything was committed by then."""

    def __init__(self, seconds: float) -> None:
        self.committed = False
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def start(self) -> None:
        """Start the clock; a thread of its own, since the event loop may be what hangs."""
        self._timer.start()

    def _end(self) -> None:
        os._exit(EXIT_OK if self.committed else EXIT_RESTART)
