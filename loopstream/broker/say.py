"""What the broker package tells a person: on stderr, data being for stdout."""

from __future__ import annotations

import sys


def say(text: str) -> None:
    """One line on stderr."""
    sys.stderr.write(f"loopstream: {text}\n")
    sys.stderr.flush()
