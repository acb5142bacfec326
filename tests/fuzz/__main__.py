"""Hostile records at the decoder and the fold: ``python -m tests.fuzz --records 100000``.

Exit code 1 unless every record was accounted for, as events or as dead letters, with no crash and
in bounded memory.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tests.fuzz.run import fuzz


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)
    outcome = fuzz(options.records, options.seed)
    sys.stdout.write(f"{outcome.closing_line()}\n")
    return 0 if outcome.clean else 1


if __name__ == "__main__":
    sys.exit(main())
