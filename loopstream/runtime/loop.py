"""The process that a worker runs in: its event loop, and how often Python looks for cycles."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A fresh loop."""
    name = "uvloop" if find_spec("uvloop") else "asyncio"  # uvloop is not made for Windows
    make: Callable[[], asyncio.AbstractEventLoop] = import_module(name).new_event_loop
    return make()


def collect_rarely() -> None:
    """Let the cycle collector look rarely.

    A worker makes many objects that live long (states of runs) or go by counting (records,
    confirmations), and hardly a cycle. At Python's own thresholds every few confirmations start a
    collection, and a growing number of runs one of everything, which stands still meanwhile.
    """
    gc.collect()
    gc.freeze()  # what is loaded by now stays
    gc.set_threshold(100_000, 50, 100)
