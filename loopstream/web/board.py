"""All that the dashboard knows: filled by the feed, read by pages and streams, on one loop."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from loopstream.events.summary import RunSummary
from loopstream.policy.deployment import Deployment
from loopstream.web.rates import Rates
from loopstream.web.ring import Ring, Said
from loopstream.web.roll import Roll

MAX_COMMANDS: Final = 1_000
MAX_BLOCKS: Final = 2_000
_STATS_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Summed:
    """A record of the run-summary topic; without a summary the run is forgotten."""

    scope: str
    summary: RunSummary | None
    size: int


@dataclass(frozen=True, slots=True)
class Block:
    """A record of the config topic; without text the block is taken away."""

    key: str
    text: str | None
    offset: int
    time_ms: int


@dataclass(frozen=True, slots=True)
class Command:
    """A record of the command topic: what an operator asked for."""

    key: str
    offset: int
    time_ms: int
    action: str
    reason: str
    by: str
    all_of_agent: bool = False
    """For all runs of the agent that the key names."""


@dataclass(frozen=True, slots=True)
class Passed:
    """A record of the verdict topic that was no verdict, or one that no worker signed."""

    partition: int
    offset: int
    unsigned: bool = False


News = Said | Summed | Block | Command | Passed


class Board:
    """The dashboard's memory; every part of it is bounded."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.ring = Ring(())
        self.roll = Roll(deployment.idle_ms)
        self.rates = Rates()
        self.blocks: dict[str, Block] = {}
        self.commands: deque[Command] = deque(maxlen=MAX_COMMANDS)
        self.undecodable = 0
        self.unsigned = 0
        self.connected = False
        self.version = 0
        self.ready = asyncio.Event()
        self._changed = asyncio.Event()
        self._stats: tuple[float, str] = (-_STATS_S, "")

    def begin(self, nexts: Sequence[int]) -> None:
        """Where reading of the verdict topic begins."""
        self.ring = Ring(nexts)

    def take(self, news: Iterable[News]) -> None:
        """Take records up, in order."""
        now = now_ms()
        for item in news:
            if isinstance(item, Said):
                if (held := self.ring.add(item)) is not None:
                    verdict = held.verdict
                    self.rates.add(verdict.append_time, verdict.action.value, now)
            elif isinstance(item, Summed):
                self.roll.put(item.scope, item.summary, item.size)
            elif isinstance(item, Block):
                self._block(item)
            elif isinstance(item, Command):
                self.commands.appendleft(item)
            else:
                self.ring.pass_over(item.partition, item.offset)
                self.undecodable += not item.unsigned
                self.unsigned += item.unsigned
        self.wake()

    def wake(self) -> None:
        """Tell those who wait that something is new."""
        self.version += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def changed(self, longest_s: float) -> bool:
        """Wait for news; False if there were none in time."""
        try:
            await asyncio.wait_for(self._changed.wait(), longest_s)
        except TimeoutError:
            return False
        return True

    def stats(self) -> str:
        """Counts and the chart's series as JSON text; made anew once a second at most."""
        made, text = self._stats
        if time.monotonic() - made >= _STATS_S:
            text = json.dumps(self.figures(), separators=(",", ":"))
            self._stats = (time.monotonic(), text)
        return text

    def figures(self) -> dict[str, Any]:
        """What the cards and the chart of the fleet page show."""
        now = now_ms()
        return {
            "runs": self.roll.counts(now),
            "minute": self.rates.last_minute(now),
            "series": self.rates.series(now),
            "connected": self.connected,
        }

    def said_of(self, scope: str) -> list[Said]:
        """Verdicts on a run that are held, the newest first."""
        return [said for said in self.ring.newest() if said.verdict.scope == scope]

    def knows(self, scope: str) -> bool:
        """Whether a worker has told of the run."""
        return self.roll.get(scope) is not None or any(
            said.verdict.scope == scope for said in self.ring.newest()
        )

    def _block(self, block: Block) -> None:
        if block.text is None:
            self.blocks.pop(block.key, None)
        elif block.key in self.blocks or len(self.blocks) < MAX_BLOCKS:
            self.blocks[block.key] = block


def now_ms() -> int:
    """The time."""
    return int(time.time() * 1000)
