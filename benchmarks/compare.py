"""(b, g) Worker and peers on one real broker: same input, same verdicts, interleaved runs.

Usage: python -m benchmarks.compare [--quick] [--rounds N] [--events N] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks import work
from loopstream.broker import EmbeddedKafka
from loopstream.runtime.admin import ensure_topics
from loopstream.wire.connection import Connection
from loopstream.wire.routing import partition_of

PARTITIONS = 4
FRAME = 50
LIMIT, QUIX, OURS = "confluent_loop", "quix", "loopstream_worker"
TIMEOUT_S = 300


def records(kind: str, framing: int, events: int, runs: int) -> Iterator[tuple[int, bytes, bytes]]:
    """(partition, key, value) of the input; frames hold events of one partition."""
    source = (
        work.streak_events(events, runs) if kind == "streak" else work.engine_events(events, runs)
    )
    pack = work.streak_record if kind == "streak" else work.engine_record
    places = {}
    waiting: dict[int, list[Any]] = {}
    for run, event in source:
        partition = places.get(run)
        if partition is None:
            partition = places[run] = partition_of(run, PARTITIONS)
        item = (run, event) if kind == "streak" else event
        if framing == 1:
            yield partition, run.encode(), pack([item])
            continue
        frame = waiting.setdefault(partition, [])
        frame.append(item)
        if len(frame) == framing:
            yield partition, b"", pack(frame)
            waiting[partition] = []
    for partition, frame in waiting.items():
        if frame:
            yield partition, b"", pack(frame)


def fill(bootstrap: str, prefix: str, kind: str, framing: int, events: int, runs: int) -> int:
    """Make the topics and write the input; bytes written."""
    ensure_topics(Connection(bootstrap=(bootstrap,)), prefix, PARTITIONS)
    settings = {"enabled": True}
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "batch.size": 500_000})
    producer.produce(f"{prefix}.config", json.dumps(settings).encode(), b"*", 0)
    producer.flush()
    written = 0
    for partition, key, value in records(kind, framing, events, runs):
        while True:
            try:
                producer.produce(f"{prefix}.events", value, key or None, partition)
                break
            except BufferError:
                producer.poll(0.1)
        written += len(value)
        producer.poll(0)
    producer.flush()
    return written


def run_peer(
    peer: str, bootstrap: str, prefix: str, kind: str, events: int, tag: str
) -> dict[str, Any]:
    """One peer in a process of its own, on input that is there already."""
    out = f"{prefix}.verdicts" if peer == OURS else f"{prefix}-{peer}-{tag}"
    if peer != OURS:
        admin = AdminClient({"bootstrap.servers": bootstrap})
        for future in admin.create_topics([NewTopic(out, PARTITIONS)]).values():
            future.result()
    command = [sys.executable, "-m", f"benchmarks.peers.{peer}"]
    options = {
        "--bootstrap": bootstrap,
        "--topic": f"{prefix}.events",
        "--out": out,
        "--name": f"{prefix}-{peer}-{tag}",
        "--events": str(events),
        "--partitions": str(PARTITIONS),
        "--work": kind,
    }
    for name, value in options.items():
        command += [name, value]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    # Whatever a framework writes to stdout first: the report is the last line's JSON object.
    lines = [line[line.index("{") :] for line in done.stdout.splitlines() if "{" in line]
    if not lines:
        raise SystemExit(f"{peer} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return dict(json.loads(lines[-1]))


def measure(
    bootstrap: str, kind: str, framing: int, peers: list[str], events: int, runs: int, rounds: int
) -> dict[str, list[dict[str, Any]]]:
    """Interleaved rounds of all peers on fresh copies of the same input."""
    results: dict[str, list[dict[str, Any]]] = {peer: [] for peer in peers}
    for turn in range(rounds):
        prefix = f"bench-{kind}-{framing}-{turn}"
        written = fill(bootstrap, prefix, kind, framing, events, runs)
        for peer in peers:
            result = run_peer(peer, bootstrap, prefix, kind, events, str(turn))
            result["input_bytes_per_event"] = written / events
            results[peer].append(result)
            print(
                f"  {kind:6} frames of {framing:2} round {turn} {peer:18} "
                f"{result['rate']:10,.0f}/s "
                f"{result['cpu_per_100k']:.2f} CPU s per 100k, {result['verdicts']} verdicts",
                file=sys.stderr,
                flush=True,
            )
        counts = {peer: results[peer][-1]["verdicts"] for peer in peers}
        if len(set(counts.values())) != 1:
            raise SystemExit(f"the peers disagree on the verdicts: {counts}")
    return results


def median(results: list[dict[str, Any]], field: str = "rate") -> float:
    """Median over rounds."""
    return statistics.median(float(result[field]) for result in results)


def ratio(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> float:
    """Median of the round-by-round ratios: what drifts in the machine cancels out."""
    return statistics.median(a["rate"] / b["rate"] for a, b in zip(one, other, strict=True))


def table(all_results: dict[str, dict[str, list[dict[str, Any]]]]) -> None:
    """All measurements as Markdown."""
    print("| work | peer | events/s min | median | max | x Quix | x limit | CPU s per 100k |")
    print("|---|---|---|---|---|---|---|---|")
    for name, results in all_results.items():
        for peer, runs in results.items():
            rates = sorted(float(run["rate"]) for run in runs)
            quix = all_results[name.split(",")[0] + ",1"].get(QUIX, runs)
            limit = results.get(LIMIT, runs)
            print(
                f"| {name.replace(',', ', frames of ')} | {peer} | {rates[0]:,.0f} | "
                f"{statistics.median(rates):,.0f} | {rates[-1]:,.0f} | {ratio(runs, quix):.2f} | "
                f"{ratio(runs, limit):.2f} | {median(runs, 'cpu_per_100k'):.2f} |"
            )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="streak only, few events")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--events", type=int, default=400_000)
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    events = given.events
    works = [("streak", 1), ("streak", FRAME)]
    if not given.quick:
        works += [("engine", 1), ("engine", FRAME)]
    measured = {}
    with EmbeddedKafka(heap_mb=1024) as broker:
        for kind, framing in works:
            # Ours last: it adds its pin to the events topic.
            peers = [LIMIT, OURS] if framing > 1 else [LIMIT, QUIX, OURS]
            count = events if kind == "streak" else events // 4
            measured[f"{kind},{framing}"] = measure(
                broker.bootstrap, kind, framing, peers, count, given.runs, given.rounds
            )
    table(measured)
    if given.json:
        given.json.write_text(json.dumps(measured, indent=1))


if __name__ == "__main__":
    main()
