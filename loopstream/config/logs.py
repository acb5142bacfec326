"""How log lines look: for people, or one JSON object a line; on stderr either way.

The client libraries tell of a broker that is away a hundred times a second; `Repeats` lets a line
of each kind through every ten seconds, with the number of those that it stands for.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

import structlog

LogFormat = Literal["text", "json"]

LIFECYCLE: Final = "loopstream.lifecycle"
"""Logger of the few lines that are worth being read in any case: ready, stopped, Kafka away."""
EVERY_S: Final = 10.0
EXPECTED_S: Final = 30.0
"""How long the expected may go on before it is told."""

_LIBRARIES: Final = frozenset({"aiokafka", "kafka", "faust", "mode"})
_MAX_KINDS: Final = 256
_NUMBERS: Final = re.compile(r"\d+")
# A fresh broker makes its offsets topic when the first group asks for it: every worker asks twice.
_EXPECTED: Final = ("Group Coordinator Request failed", "[Error 15]")


def logging_config(level: str, form: LogFormat) -> dict[str, Any]:
    """The argument of ``logging.config.dictConfig``.

    Args:
        level: lowest level shown, in the standard library's words.
        form: ``text`` or ``json`` (keys: timestamp, level, logger, event, exception).
    """
    lifecycle = "INFO" if level in {"DEBUG", "INFO", "WARNING"} else level
    filters = {} if level == "DEBUG" else {"repeats": {"()": Repeats}}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": filters,
        "formatters": {"chosen": _text() if form == "text" else _json()},
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "stream": "ext://sys.stderr",
                "formatter": "chosen",
                "filters": list(filters),
            }
        },
        "loggers": {LIFECYCLE: {"level": lifecycle}},
        "root": {"level": level, "handlers": ["stderr"]},
    }


@dataclass(slots=True)
class _Kind:
    shown: float
    first: float
    held_back: int = 0


class Repeats(logging.Filter):
    """Thins out what the client libraries repeat; lines of others pass as they are.

    Lines are of one kind if they come from one logger and differ in numbers alone.

    Args:
        now: seconds, monotonic.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        self._kinds: dict[tuple[str, str], _Kind] = {}
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is shown; it then says how many were not."""
        if record.name.partition(".")[0] not in _LIBRARIES:
            return True
        text = record.getMessage()
        expected = all(part in text for part in _EXPECTED)
        with self._lock:
            held_back = self._held_back((record.name, _NUMBERS.sub("#", text)), expected)
        if held_back is None:
            return False
        if expected:
            record.levelno, record.levelname = logging.WARNING, "WARNING"
        if held_back:
            record.msg = f"{text} (and {held_back} more like it)"
            record.args = ()
        return True

    def _held_back(self, key: tuple[str, str], expected: bool) -> int | None:
        """How many lines of the kind were held back before this one; None: it is one of them."""
        now = self._now()
        kind = self._kinds.get(key)
        if kind is None:
            if len(self._kinds) >= _MAX_KINDS:
                self._kinds.clear()
            self._kinds[key] = _Kind(shown=now, first=now, held_back=int(expected))
            return None if expected else 0
        early = now - kind.shown < EVERY_S or (expected and now - kind.first < EXPECTED_S)
        if early:
            kind.held_back += 1
            return None
        held_back, kind.held_back, kind.shown = kind.held_back, 0, now
        return held_back


def _text() -> dict[str, Any]:
    return {"format": "%(asctime)s %(levelname)-7s %(name)s: %(message)s"}


def _json() -> dict[str, Any]:
    return {
        "()": structlog.stdlib.ProcessorFormatter,
        "foreign_pre_chain": [
            structlog.stdlib.add_logger_name,
            structlog.stdlib.add_log_level,
            structlog.stdlib.ExtraAdder(),
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
        ],
        "processors": [
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ],
    }
