"""Where a worker's time goes while it catches up: py-spy, a top list and a flame graph.

    python -m benchmarks.profiling [--work engine] [--framing "single msgpack"] [--events N]

Writes ``profile-<work>-<framing>.md`` and ``….svg`` into docs/performance.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.kit import feed, kafka
from benchmarks.kit.process import Child
from benchmarks.kit.results import say
from benchmarks.peers.registry import OURS, available, command
from benchmarks.report import DOCS

ROOT: Final = Path(__file__).resolve().parents[1]
TOP: Final = 30
TIMEOUT_S: Final = 600.0


def recorded(bootstrap: str, given: argparse.Namespace, form: str, turn: int) -> str:
    """What py-spy wrote of one catch-up, from the worker's start to its end."""
    prefix = f"profile-{turn}"
    topics = kafka.prepare(bootstrap, prefix)
    source = feed.records(given.work, given.framing, given.events, given.runs)
    feed.write(bootstrap, topics.events, source)
    (ours,), _ = available([OURS])
    words = command(ours, bootstrap, prefix, topics.verdicts, given.work, given.events)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "profile"
        spy = [_py_spy(), "record", "--rate", "200", "--format", form, "--output", str(out), "--"]
        with Child([*spy, *words]) as child:
            child.output(TIMEOUT_S)
            if not out.exists():
                raise SystemExit(f"py-spy failed:\n{child.said()}")
        return out.read_text(encoding="utf-8").replace(f"{ROOT}/", "")


def _py_spy() -> str:
    """Beside the interpreter first: the environment need not be activated."""
    found = shutil.which("py-spy", path=str(Path(sys.executable).parent)) or shutil.which("py-spy")
    if found is None:
        raise SystemExit("py-spy is not installed: pip install -r benchmarks/requirements.txt")
    return found


def applied(raw: str) -> Iterator[tuple[list[str], int]]:
    """(frames, samples) of stacks of the event loop at work: without the start and waiting."""
    for line in raw.splitlines():
        stack, _, count = line.rpartition(" ")
        frames = stack.split(";")
        if any("execute_from_commandline" in frame for frame in frames):
            yield frames, int(count)


def top_list(raw: str) -> Iterator[str]:
    """The functions with the most samples of their own, and by folder."""
    own: Counter[str] = Counter()
    folders: Counter[str] = Counter()
    for frames, count in applied(raw):
        own[frames[-1].rpartition(":")[0] + ")"] += count
        folders[_folder(frames)] += count
    total = sum(own.values()) or 1
    yield "| share | where: innermost of ours on the stack, else the library |"
    yield "|---|---|"
    for name, count in folders.most_common(TOP // 2):
        yield f"| {count / total:.1%} | {name} |"
    yield ""
    yield "| share | function, by samples of its own |"
    yield "|---|---|"
    for name, count in own.most_common(TOP):
        yield f"| {count / total:.1%} | `{name}` |"


def _folder(frames: list[str]) -> str:
    for frame in reversed(frames):
        if "(loopstream/" in frame:
            path = frame.partition("(")[2].rpartition(":")[0]
            return "/".join(path.split("/")[:2])
    return frames[-1].partition("(")[2].split("/")[0].rstrip(")")


def main() -> None:
    """Record twice, write twice."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", choices=("streak", "engine"), default="engine")
    parser.add_argument(
        "--framing",
        choices=("frames of 50", "single msgpack", "single JSON"),
        default="single msgpack",
    )
    parser.add_argument("--events", type=int, default=400_000)
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--docs", type=Path, default=DOCS)
    given = parser.parse_args()
    name = f"profile-{given.work}-{given.framing.replace(' ', '-')}"
    with kafka.broker() as bootstrap:
        raw = recorded(bootstrap, given, "raw", 0)
        graph = recorded(bootstrap, given, "flamegraph", 1)
    lines = [
        f"# Profile: {given.work} work, {given.framing}",
        "",
        "Written by `python -m benchmarks.profiling`: py-spy, 200 samples a second, catch-up of",
        f"{given.events:,} events of {given.runs:,} runs. [The flame graph]({name}.svg). What it",
        "says is in [README.md](README.md).",
        "",
        *top_list(raw),
    ]
    given.docs.mkdir(parents=True, exist_ok=True)
    (given.docs / f"{name}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (given.docs / f"{name}.svg").write_text(graph, encoding="utf-8")
    say(f"written: {given.docs / name}.md and .svg")


if __name__ == "__main__":
    main()
