"""The event loop: uvloop's where the platform has it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A fresh loop."""
    name = "uvloop" if find_spec("uvloop") else "asyncio"  # uvloop is not made for Windows
    make: Callable[[], asyncio.AbstractEventLoop] = import_module(name).new_event_loop
    return make()
