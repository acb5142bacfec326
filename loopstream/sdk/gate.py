"""A call that waits for loopstream's answer."""

from __future__ import annotations

import threading
from collections.abc import Callable

from loopstream.events import Verdict
from loopstream.sdk.decisions import Call


class Gate:
    """Opened when the call's event is queued; an answer, or the end of the run, lifts it.

    The sync runner waits in `wait`; the asyncio one has itself called back by `on_lift`.

    Attributes:
        call: the call that waits.
        timeout: how long it may wait, in seconds.
        answer: the verdict; None while there is none, and if the run ended.
    """

    def __init__(self, call: Call, timeout: float) -> None:
        self.call = call
        self.timeout = timeout
        self.answer: Verdict | None = None
        self._lock = threading.Lock()
        self._lifted = False
        self._callback: Callable[[], None] | None = None

    def lift(self, answer: Verdict | None) -> None:
        """Let the call go on. Only the first time counts."""
        with self._lock:
            if self._lifted:
                return
            self._lifted = True
            self.answer = answer
            callback = self._callback
        if callback is not None:
            callback()

    def on_lift(self, callback: Callable[[], None]) -> None:
        """Have ``callback`` called when the gate is lifted: at once if it is."""
        with self._lock:
            if not self._lifted:
                self._callback = callback
                return
        callback()

    def wait(self) -> None:
        """Block until the gate is lifted or its time is up."""
        lifted = threading.Event()
        self.on_lift(lifted.set)
        lifted.wait(self.timeout)
