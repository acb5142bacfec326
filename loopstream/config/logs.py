"""How log lines look: for people, or one JSON object a line; on stderr either way."""

from __future__ import annotations

from typing import Any, Literal

import structlog

LogFormat = Literal["text", "json"]


def logging_config(level: str, form: LogFormat) -> dict[str, Any]:
    """The argument of ``logging.config.dictConfig``.

    Args:
        level: lowest level shown, in the standard library's words.
        form: ``text`` or ``json`` (keys: timestamp, level, logger, event, exception).
    """
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"chosen": _text() if form == "text" else _json()},
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "stream": "ext://sys.stderr",
                "formatter": "chosen",
            }
        },
        "root": {"level": level, "handlers": ["stderr"]},
    }


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
