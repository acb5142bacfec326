"""How fast a topic is replayed, and how much memory that takes.

Generates a fleet's events, lets workers judge them, then measures: merely reading the topic,
replaying it with one and two processes, and whether the replay equals the recording.

    python benchmarks/replay.py --events 2000000 --runs 20000
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import psutil
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from loopstream.broker import EmbeddedKafka
from loopstream.replay.kafka import KafkaSource
from loopstream.runtime.admin import ensure_topics
from loopstream.runtime.topics import Topics
from loopstream.wire.codec import pack_frame
from loopstream.wire.connection import Connection
from loopstream.wire.routing import partition_of

PREFIX = "bench"
PARTITIONS = 4
AT_ONCE = 2000
FRAME = 50
LOOPING = 20  # every so many runs one is stuck
DISTINCT = [hashlib.sha256(b"%d" % n).digest() for n in range(4096)]


def events_of(number: int, count: int) -> Iterator[dict[str, Any]]:
    """One run: begun, told turn by turn, ended; every twentieth repeats itself."""
    common = {"v": 1, "run": f"run-{number:07}", "agent": f"agent-{number % 7}", "epoch": 1}
    stuck = number % LOOPING == 0
    for seq in range(1, count + 1):
        event = {**common, "id": f"{seq:x}", "seq": seq, "time": 1_000_000 + seq * 500}
        if seq in {1, count}:
            yield {**event, "type": "run_started" if seq == 1 else "run_ended"}
            continue
        turn = 0 if stuck and seq > 20 else seq // 2 * 31 + number
        fp: dict[str, Any] = {"args": DISTINCT[turn % 4096]}
        if seq % 2:
            fp["result"] = DISTINCT[turn * 7 % 4096]
        kind = "tool_outcome" if seq % 2 else "tool_call"
        tool = ("exec", "read", "edit", "web_search")[turn % 4]
        yield {**event, "type": kind, "tool": tool, "fp": {"v": 1, "documented": fp}}


def interleaved(runs: int, each: int) -> Iterator[dict[str, Any]]:
    """Runs as they overlap: some begin while others end."""
    live: list[Iterator[dict[str, Any]]] = []
    begun = 0
    while live or begun < runs:
        while len(live) < AT_ONCE and begun < runs:
            live.append(events_of(begun, each))
            begun += 1
        for run in tuple(live):
            event = next(run, None)
            if event is None:
                live.remove(run)
            else:
                yield event


def generate(bootstrap: str, events: int, runs: int) -> float:
    """Fill the topic; seconds taken."""
    began = time.monotonic()
    producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=20, batch_size=256 * 1024)
    waiting: dict[int, list[dict[str, Any]]] = {number: [] for number in range(PARTITIONS)}
    where: dict[str, int] = {}
    for event in interleaved(runs, events // runs):
        run = event["run"]
        number = where.get(run)
        if number is None:
            number = where[run] = partition_of(run, PARTITIONS)
        held = waiting[number]
        held.append(event)
        if len(held) == FRAME:
            producer.send(f"{PREFIX}.events", value=pack_frame(held), partition=number)
            held.clear()
    for number, held in waiting.items():
        if held:
            producer.send(f"{PREFIX}.events", value=pack_frame(held), partition=number)
    producer.flush()
    producer.close()
    return time.monotonic() - began


def source(bootstrap: str) -> KafkaSource:
    """The benchmark's topics."""
    topics = Topics(PREFIX)
    connection = Connection(bootstrap=(bootstrap,))
    return KafkaSource(connection, topics.events, topics.config, topics.commands)


def read(bootstrap: str, numbers: list[int]) -> int:
    """Bytes of the partitions' records, merely read."""
    with source(bootstrap).open() as log:
        spans = {n: (log.bounds(n).begin, log.bounds(n).end) for n in numbers}
        return sum(len(record.value or b"") for batch in log.batches(spans) for record in batch)


def judge(bootstrap: str, folder: Path, workers: int) -> float:
    """Let workers judge everything; seconds until they had committed the end."""
    began = time.monotonic()
    command = [sys.executable, "-m", "loopstream", "worker", "-b", bootstrap, "-p", PREFIX]
    with (folder / "workers.log").open("wb") as out:
        running = [subprocess.Popen(command, stdout=out, stderr=out) for _ in range(workers)]
        client = KafkaConsumer(bootstrap_servers=bootstrap, group_id=f"{PREFIX}.worker")
        parts = [TopicPartition(f"{PREFIX}.events", n) for n in range(PARTITIONS)]
        try:
            # Their pins come on top of what was sent.
            while any(
                (client.committed(p) or 0) < end for p, end in client.end_offsets(parts).items()
            ):
                time.sleep(0.5)
                if any(process.poll() is not None for process in running):
                    raise SystemExit((folder / "workers.log").read_text())
        finally:
            client.close(autocommit=False)
            for process in running:
                process.terminate()
            for process in running:
                process.wait()
    return time.monotonic() - began


def replay(bootstrap: str, out: Path, processes: int) -> tuple[float, int, dict[str, Any]]:
    """Seconds, peak memory of all its processes in bytes, its summary."""
    began, cpu = time.monotonic(), sum(os.times()[2:4])
    command = [sys.executable, "-m", "loopstream", "replay", "-b", bootstrap, "-p", PREFIX]
    command += ["--processes", str(processes), "--out", str(out), "-o", "json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    watched, peak = psutil.Process(process.pid), 0
    while process.poll() is None:
        try:
            family = [watched, *watched.children(recursive=True)]
            peak = max(peak, sum(each.memory_info().rss for each in family))
        except psutil.NoSuchProcess:
            pass
        time.sleep(0.05)
    (summary,) = json.loads(b"" if process.stdout is None else process.stdout.read())
    summary["cpu"] = sum(os.times()[2:4]) - cpu
    return time.monotonic() - began, peak, summary


def audit(bootstrap: str, out: Path) -> str:
    """The replay against what the workers published."""
    command = [sys.executable, "-m", "loopstream", "diff", str(out), "recorded", "-b", bootstrap]
    command += ["-p", PREFIX, "-o", "json"]
    told = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    found = json.loads(told)
    sides = found["sides"]
    same = found["counts"]["same"]
    return f"replayed={sides['a']} recorded={sides['b']} identical={same}"


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--processes", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--bootstrap")
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        bootstrap = given.bootstrap or stack.enter_context(EmbeddedKafka()).bootstrap
        measure(bootstrap, folder, given)


def measure(bootstrap: str, folder: Path, given: argparse.Namespace) -> None:
    """Print a line for each figure."""
    events, runs, workers = given.events, given.runs, given.workers
    ensure_topics(Connection(bootstrap=(bootstrap,)), PREFIX, PARTITIONS, 1)
    settings = folder / "on.json"
    settings.write_text('{"enabled": true}')
    push = [sys.executable, "-m", "loopstream", "config", "push", str(settings)]
    subprocess.run([*push, "-b", bootstrap, "-p", PREFIX], check=True)
    seconds = generate(bootstrap, events, runs)
    print(f"generated {events:,} events of {runs:,} runs: {events / seconds:,.0f}/s")
    if workers:
        seconds = judge(bootstrap, folder, workers)
        print(f"judged by {workers} workers: {events / seconds:,.0f} events/s")
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        for shares in ([[0, 1, 2, 3]], [[0, 1], [2, 3]]):
            began = time.monotonic()
            size = sum(pool.map(read, [bootstrap] * len(shares), shares))
            seconds = time.monotonic() - began
            rate = f"{events / seconds:,.0f} events/s, {size / seconds / 1e6:,.0f} MB/s"
            print(f"merely read by {len(shares)} processes: {rate}")
    for processes in given.processes:
        out = folder / f"{processes}.ndjson"
        seconds, peak, summary = replay(bootstrap, out, processes)
        folded = summary["events"] / summary["seconds"]
        cpu = summary["cpu"] / events * 1e6
        print(
            f"replayed by {processes} processes: {folded:,.0f} events/s "
            f"({seconds:.1f} s with start, {cpu:.1f} us of CPU an event), "
            f"peak {peak / 1e6:,.0f} MB, "
            f"{summary['runs']:,} runs, {summary['verdicts']:,} verdicts"
        )
    if workers:
        print(audit(bootstrap, folder / f"{given.processes[-1]}.ndjson"))


if __name__ == "__main__":
    main()
