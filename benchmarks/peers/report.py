"""What each peer process takes and tells."""

from __future__ import annotations

import argparse
import json
import os
import time


def arguments() -> argparse.Namespace:
    """The same for every peer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True, help="input; filled before")
    parser.add_argument("--out", required=True, help="verdicts")
    parser.add_argument("--name", required=True, help="group, and prefix of own topics")
    parser.add_argument("--events", type=int, required=True)
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument("--work", choices=("streak", "engine"), required=True)
    return parser.parse_args()


class Meter:
    """Counts events; the clock starts with the first one."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.seen = 0
        self.verdicts = 0
        self._started = 0.0
        self._cpu = 0.0
        self._ended = 0.0
        self._cpu_ended = 0.0

    def start(self) -> None:
        """The first events are here."""
        if not self._started:
            self._started, self._cpu = time.monotonic(), _cpu()

    def add(self, events: int) -> bool:
        """So many more are done; whether that was all."""
        self.seen += events
        return self.seen >= self.total

    def stop(self) -> None:
        """Everything is done, and durable where the peer makes it so."""
        self._ended, self._cpu_ended = time.monotonic(), _cpu()

    def report(self, **more: float) -> None:
        """One JSON line on stdout."""
        seconds = self._ended - self._started
        cpu = self._cpu_ended - self._cpu
        line = {
            "events": self.seen,
            "verdicts": self.verdicts,
            "seconds": seconds,
            "rate": self.seen / seconds,
            "cpu_per_100k": cpu / self.seen * 100_000,
            **more,
        }
        print(json.dumps(line), flush=True)


def _cpu() -> float:
    times = os.times()
    return times.user + times.system
