"""What the runner SDK costs a process: time of `before_call`, and events per second to a broker.

Usage: python benchmarks/sdk.py [BOOTSTRAP]. Without an address it starts the embedded broker.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from loopstream.broker import EmbeddedKafka
from loopstream.sdk import Run, Runner

PREFIX = f"bench{time.time_ns():x}"
PARTITIONS = 8
CALLS = 20_000
RUNS = 50
SECONDS = 5.0
# Arguments of 1 kB, as an editing tool has them.
ARGS = {"path": "src/app/main.py", "old": "x = 1\n" * 75, "new": "x = 2\n" * 75, "all": False}
RESULT = {"content": [{"type": "text", "text": "done\n" * 40}], "details": {"status": "completed"}}


def main() -> None:
    """Measure against the broker named on the command line, else one of our own."""
    if len(sys.argv) > 1:
        measure(sys.argv[1])
        return
    with EmbeddedKafka() as broker:
        measure(broker.bootstrap)


def measure(bootstrap: str) -> None:
    """Make topics, and print one line a measurement."""
    create_topics(bootstrap)
    with Runner(bootstrap, prefix=PREFIX, agent="bench", key=b"0123456789abcdef") as runner:
        runner.wait_ready(60)
        with runner.run() as run:
            show("before_call, 1 kB of arguments", lambda _: run.before_call("edit", ARGS))
            show("before_call, another each time", lambda n: run.before_call("edit", {"n": n}))
            decision = run.before_call("edit", ARGS)
            show("after_call, 1 kB and a result", lambda _: run.after_call(decision, result=RESULT))
        drained(runner)
        throughput(runner)
        print(runner.counters)


def create_topics(bootstrap: str) -> None:
    """The two topics that a runner needs."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics(
        [NewTopic(f"{PREFIX}.{name}", PARTITIONS, 1) for name in ("events", "verdicts")]
    )
    admin.close()


def show(name: str, call: Callable[[int], object]) -> None:
    """Time a call many times, at a pace that leaves the sender its share."""
    times = []
    for n in range(CALLS):
        begin = time.perf_counter_ns()
        call(n)
        times.append(time.perf_counter_ns() - begin)
        if n % 100 == 0:
            time.sleep(0.005)
    quantiles = statistics.quantiles(times, n=100)
    print(
        f"{name}: p50 {quantiles[49] / 1000:.1f} us, p99 {quantiles[98] / 1000:.1f} us"
        f" ({CALLS} calls)"
    )


def throughput(runner: Runner) -> None:
    """As many calls and outcomes as one thread makes in a while, until all are confirmed."""
    runs: list[Run] = [runner.run() for _ in range(RUNS)]
    before = runner.counters["events_sent"]
    cpu, begin = time.process_time(), time.perf_counter()
    n = 0
    while time.perf_counter() - begin < SECONDS:
        run = runs[n % RUNS]
        decision = run.before_call("exec", {"command": f"make step-{n % 7}"})
        run.after_call(decision, result=RESULT)
        n += 1
    drained(runner)
    took = time.perf_counter() - begin
    sent = runner.counters["events_sent"] - before
    print(
        f"events/s: {sent / took:,.0f} confirmed over {took:.1f} s, {RUNS} runs,"
        f" {(time.process_time() - cpu) / sent * 1e6:.1f} us of CPU each"
    )


def drained(runner: Runner) -> None:
    """Wait until Kafka has confirmed everything."""
    while runner.counters["events_pending"]:
        time.sleep(0.001)


if __name__ == "__main__":
    main()
