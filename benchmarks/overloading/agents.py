"""1,000 agents in one runner process: threads, or tasks of one event loop; a call a second each.

A process of its own, run by `benchmarks.overload`; one JSON line on stdout.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import threading
import time
from typing import Any, Final

import psutil

from benchmarks.kit.stats import quantile
from loopstream.sdk import AsyncRunner, Runner

RESULT: Final = {"content": [{"type": "text", "text": "done\n" * 40}]}
EVERY_S: Final = 1.0


def threads(given: argparse.Namespace, took: list[float]) -> dict[str, int]:
    """Each agent is a thread."""
    options: dict[str, Any] = {"prefix": given.prefix, "agent": "bench", "key": b"k" * 32}
    with Runner(given.bootstrap, **options) as runner:
        runner.wait_ready(60)

        def agent(number: int, until: float) -> None:
            with runner.run() as run:
                time.sleep(random.uniform(0, EVERY_S))
                while time.monotonic() < until:
                    began = time.perf_counter()
                    decision = run.before_call("exec", {"command": f"make step-{number}-{began}"})
                    took.append(time.perf_counter() - began)
                    run.after_call(decision, result=RESULT)
                    time.sleep(EVERY_S)

        until = time.monotonic() + given.seconds
        all_ = [threading.Thread(target=agent, args=(n, until)) for n in range(given.agents)]
        for thread in all_:
            thread.start()
        for thread in all_:
            thread.join()
        while runner.counters["events_pending"]:
            time.sleep(0.01)
        return runner.counters


async def tasks(given: argparse.Namespace, took: list[float]) -> dict[str, int]:
    """Each agent is a task."""
    options: dict[str, Any] = {"prefix": given.prefix, "agent": "bench", "key": b"k" * 32}
    async with AsyncRunner(given.bootstrap, **options) as runner:
        await runner.wait_ready(60)

        async def agent(number: int, until: float) -> None:
            async with runner.run() as run:
                await asyncio.sleep(random.uniform(0, EVERY_S))
                while time.monotonic() < until:
                    began = time.perf_counter()
                    command = {"command": f"make step-{number}-{began}"}
                    decision = await run.before_call("exec", command)
                    took.append(time.perf_counter() - began)
                    await run.after_call(decision, result=RESULT)
                    await asyncio.sleep(EVERY_S)

        until = time.monotonic() + given.seconds
        await asyncio.gather(*(agent(number, until) for number in range(given.agents)))
        while runner.counters["events_pending"]:  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.01)
        return runner.counters


def main() -> None:
    """Run the agents, tell what it cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--agents", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--how", choices=("threads", "tasks"), required=True)
    given = parser.parse_args()
    took: list[float] = []
    began, cpu = time.monotonic(), time.process_time()
    how = given.how
    counters = threads(given, took) if how == "threads" else asyncio.run(tasks(given, took))
    seconds = time.monotonic() - began
    sent = counters["events_sent"]
    print(
        json.dumps(
            {
                "rate": sent / seconds,
                "cpu_us": (time.process_time() - cpu) / sent * 1e6,
                "p50": quantile(took, 0.5) * 1000,
                "p99": quantile(took, 0.99) * 1000,
                "dropped": counters["events_dropped"],
                "rss_peak_mib": psutil.Process().memory_info().rss / 2**20,
            }
        )
    )


if __name__ == "__main__":
    main()
