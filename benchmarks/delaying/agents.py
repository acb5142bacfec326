"""The product end to end: agents on the SDK, and how long verdicts on their calls take.

Run by `benchmarks.delay`; one JSON line on stdout. Half of the runs are stuck in a loop: they are
warned, blocked and replaced by fresh ones. One more thread asks through a gate.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
import uuid
from typing import Any

from benchmarks.kit.pace import paced
from benchmarks.kit.stats import percentiles
from loopstream.sdk import Run, Runner
from loopstream.sdk.ports import Record
from loopstream.wire.verdicts import decode_verdict

RESULT = {"content": [{"type": "text", "text": "done"}], "details": {"status": "completed"}}
GATES_PER_S = 20
EVENTS_PER_CALL = 2


class Listener:
    """Sees each verdict as the SDK hands it to its run."""

    def __init__(self, runner: Runner) -> None:
        self.delays: list[tuple[float, float]] = []
        hub: Any = runner._machine.hub  # noqa: SLF001 - looking on, from outside
        self._deliver = hub.deliver
        hub.deliver = self.deliver

    def deliver(self, record: Record) -> None:
        """In place of the hub's: an event's time is that of `before_call`, to the millisecond."""
        now = time.time()
        self._deliver(record)
        verdict = decode_verdict(record.value, record.content_type)
        if verdict.action.value != "answer":
            self.delays.append((time.monotonic(), now - verdict.event_time / 1000))


class Agents:
    """Runs by turns; a blocked one ends, and another begins in its place."""

    def __init__(self, runner: Runner, count: int) -> None:
        self._runner = runner
        self._runs: list[Run] = [runner.run() for _ in range(count)]
        self._turn = 0
        self.late: list[float] = []

    def call(self) -> None:
        """One call of the next run, and its outcome."""
        at = self._turn % len(self._runs)
        stuck = at % 2 == 0
        run = self._runs[at]
        command = "make test" if stuck else f"make step-{self._turn}"
        decision = run.before_call("exec", {"command": command})
        if decision.allowed:
            text = "same" if stuck else str(self._turn)
            run.after_call(decision, result={**RESULT, "text": text})
        else:
            run.end()
            self._runs[at] = self._runner.run()
        self._turn += 1


def ask(runner: Runner, until: float, waits: list[tuple[float, float]]) -> None:
    """What an agent waits for an explicit answer."""
    with runner.run() as run:
        while time.monotonic() < until:
            began = time.monotonic()
            decision = run.before_call("read", {"path": str(uuid.uuid4())}, wait=2.0)
            waits.append((began, time.monotonic() - began))
            run.after_call(decision, result=RESULT)
            time.sleep(1 / GATES_PER_S)


def main() -> None:
    """Warm up, measure, tell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--runs", type=int, required=True)
    parser.add_argument("--warm-up", type=float, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    given = parser.parse_args()
    sys.setswitchinterval(0.0005)
    with Runner(given.bootstrap, prefix=given.prefix, agent="bench", key=b"k" * 32) as runner:
        runner.wait_ready(60)
        listener = Listener(runner)
        agents = Agents(runner, given.runs)
        began = time.monotonic()
        length = given.warm_up + given.seconds
        waits: list[tuple[float, float]] = []
        gate = threading.Thread(target=ask, args=(runner, began + length, waits))
        gate.start()
        before = runner.counters["events_sent"]
        for due in paced(given.rate / EVENTS_PER_CALL, length):
            for _ in range(due):
                agents.call()
        ended = time.monotonic()
        gate.join()
        sent = runner.counters["events_sent"] - before
        report = {
            "sdk": _told(listener.delays, began + given.warm_up),
            "gate": _told(waits, began + given.warm_up),
        }
        for each in report.values():
            each["sent_per_s"] = sent / (ended - began)
    print(json.dumps(report))


def _told(seen: list[tuple[float, float]], since: float) -> dict[str, float]:
    return percentiles([took * 1000 for at, took in seen if at > since])


if __name__ == "__main__":
    main()
