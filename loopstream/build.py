"""How this installation was built: the engine compiled by mypyc, or plain Python (ADR 6)."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Literal


def engine_build() -> Literal["compiled", "python"]:
    """Which of the two runs for each event; both decide the same, byte for byte."""
    spec = find_spec("loopstream.engine")
    origin = spec.origin if spec is not None else None
    return "python" if origin is None or origin.endswith(".py") else "compiled"
