"""The newest steps of a run, and since when they repeat with which period."""

from __future__ import annotations

from collections import deque
from typing import Final

MAX_PERIOD: Final = 16
MAX_MEMBERS: Final = 32
_WORD: Final = (1 << 64) - 1


class Steps:
    """A step is one settled call, or one whole parallel batch in any order.

    ``runs[p]`` counts the newest steps in a row that equal the one ``p`` before; a period is
    missing while it does not hold. A step costs O(16) while something repeats and O(1) else.
    """

    __slots__ = (
        "_laps",
        "batch",
        "batch_members",
        "batch_token",
        "members",
        "runs",
        "times",
        "tokens",
    )

    def __init__(self) -> None:
        self.tokens: deque[int] = deque(maxlen=MAX_PERIOD)
        self.members: deque[tuple[str, ...]] = deque(maxlen=MAX_PERIOD)
        self.times: deque[int] = deque(maxlen=MAX_PERIOD)
        self.runs: dict[int, int] = {}
        self.batch = 0
        self.batch_token = 0
        self.batch_members: list[str] = []
        # Signatures of one lap by period, as long as the period holds.
        self._laps: dict[int, tuple[str, ...]] = {}

    @property
    def solid(self) -> int:
        """Number of newest steps that are all equal."""
        return self.runs.get(1, 0) + 1

    @property
    def pace(self) -> float:
        """Mean time of the newest steps, in milliseconds."""
        times = self.times
        return (times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else 0.0

    def add(self, token: int, signature: str, batch: int, time: int) -> None:
        """A call came to something; those of one batch make one step."""
        if not batch:
            if self.batch:
                self.close(0, time)
            self._push(token, (signature,), time)
            return
        if batch != self.batch:
            self.close(batch, time)
        self.batch_token = (self.batch_token + token) & _WORD
        if len(self.batch_members) < MAX_MEMBERS and signature not in self.batch_members:
            self.batch_members.append(signature)

    def close(self, batch: int, time: int) -> None:
        """Another message begins: what the open batch came to is a step."""
        if self.batch == batch:
            return
        if self.batch_members:
            self._push(self.batch_token, tuple(sorted(self.batch_members)), time)
        self.batch, self.batch_token, self.batch_members = batch, 0, []

    def period(self, laps: int) -> int:
        """The smallest period that the suffix has kept for at least so many laps; 0: none."""
        for period, run in self.runs.items():  # in ascending order
            if run >= period * (laps - 1):
                return period
        return 0

    def laps(self, period: int) -> int:
        """Whole laps of a period that the suffix consists of."""
        return self.runs.get(period, 0) // period + 1

    def cycle(self, period: int) -> tuple[str, ...]:
        """Signatures of one lap, each once, sorted."""
        lap = self._laps.get(period)
        if lap is None:
            newest = list(self.members)[-period:]
            lap = tuple(sorted({signature for step in newest for signature in step}))
            self._laps[period] = lap
        return lap

    def _push(self, token: int, members: tuple[str, ...], time: int) -> None:
        tokens = self.tokens
        if token in tokens:
            runs = self.runs
            self.runs = {
                period: runs.get(period, 0) + 1
                for period, old in enumerate(reversed(tokens), 1)
                if old == token
            }
            for period in [period for period in self._laps if period not in self.runs]:
                del self._laps[period]
        elif self.runs:
            self.runs = {}
            self._laps.clear()
        tokens.append(token)
        self.members.append(members)
        self.times.append(time)
