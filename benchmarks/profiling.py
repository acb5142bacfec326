"""Where a worker's time goes while it catches up: py-spy, a top list and a flame graph.

    python -m benchmarks.profiling [--work engine] [--framing "single msgpack"] [--events N]

Writes ``profile-<work>-<framing>.md`` and ``….svg`` into docs/performance.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.kit import feed, kafka
from benchmarks.kit.process import Child
from benchmarks.kit.results import say
from benchmarks.peers.registry import OURS, available, command
from benchmarks.report import DOCS
from benchmarks.reporting.flame import flame, stacks, top_lists

ROOT: Final = Path(__file__).resolve().parents[1]
PREFIX: Final = "profile"
TIMEOUT_S: Final = 600.0


def recorded(bootstrap: str, given: argparse.Namespace) -> str:
    """The stacks that py-spy counted of one catch-up, from the worker's start to its end."""
    topics = kafka.prepare(bootstrap, PREFIX)
    source = feed.records(given.work, given.framing, given.events, given.runs)
    feed.write(bootstrap, topics.events, source)
    (ours,), _ = available([OURS])
    words = command(ours, bootstrap, PREFIX, topics.verdicts, given.work, given.events)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "profile"
        spy = [_py_spy(), "record", "--rate", "200", "--format", "raw", "--output", str(out), "--"]
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


def main() -> None:
    """Record, write."""
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
        seen = list(stacks(recorded(bootstrap, given)))
    lines = [
        f"# Profile: {given.work} work, {given.framing}",
        "",
        "Written by `python -m benchmarks.profiling`: py-spy, 200 samples a second, catch-up of",
        f"{given.events:,} events of {given.runs:,} runs. [The flame graph]({name}.svg). What it",
        "says is in [README.md](README.md).",
        "",
        *top_lists(seen),
    ]
    given.docs.mkdir(parents=True, exist_ok=True)
    (given.docs / f"{name}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (given.docs / f"{name}.svg").write_text(flame(seen), encoding="utf-8")
    say(f"written: {given.docs / name}.md and .svg")


if __name__ == "__main__":
    main()
