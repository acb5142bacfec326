"""A fleet under faults for some minutes: ``python -m tests.faults.soak --minutes 60``.

Three workers with static membership judge 1,000 events/s of 2,000 runs while things go wrong from
a seeded plan. The last line says what came of it; exit code 1 unless nothing was lost, made up,
doubled or kept wrongly. SIGINT and SIGTERM end the load early; what came is judged all the same.
"""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.faults.soak.plan import KINDS
from tests.faults.soak.report import page
from tests.faults.soak.soak import Soak


def main(argv: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="loopstream-soak-", dir=options.folder) as folder:
        command = shlex.join(["python", "-m", "tests.faults.soak", *(argv or sys.argv[1:])])
        with Soak(options, Path(folder), command) as soak:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda *_: soak.finish())
            outcome = soak.run()
            if not outcome.clean:
                _say_logs(Path(folder))
    if options.report is not None:
        options.report.parent.mkdir(parents=True, exist_ok=True)
        options.report.write_text(page(outcome))
    else:
        _say(page(outcome))
    for trouble in outcome.troubles:
        _say(trouble)
    _say(outcome.closing_line())
    return 0 if outcome.clean else 1


def _say_logs(folder: Path) -> None:
    for log in sorted(folder.glob("w*.log")):
        _say(f"--- {log.name}\n{log.read_text(errors='replace')[-6000:]}")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _kinds(text: str) -> tuple[str, ...]:
    kinds = tuple(part for part in text.split(",") if part)
    if strange := set(kinds) - set(KINDS):
        raise argparse.ArgumentTypeError(f"{', '.join(strange)}: not one of {', '.join(KINDS)}")
    return kinds or KINDS


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", type=_kinds, default=KINDS, help=",".join(KINDS))
    parser.add_argument("--intensity", type=float, default=1.0, help="of the faults")
    parser.add_argument("--per-second", type=int, default=1_000, help="events")
    parser.add_argument("--runs", type=int, default=2_000, help="alive at the same time")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--partitions", type=int, default=6)
    parser.add_argument("--report", type=Path, help="Markdown file; default: stdout")
    parser.add_argument("--folder", type=Path, help="where the broker keeps its data meanwhile")
    return parser


if __name__ == "__main__":
    sys.exit(main())
