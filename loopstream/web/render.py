"""Pages as text. What strangers sent is escaped, and control characters are shown as symbols.

Both happen to every value that a template puts out, so that no template can forget it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final
from urllib.parse import urlencode

import jinja2
from markupsafe import Markup

from loopstream.wire.routing import NO_RUN_PREFIX

RESOURCES: Final = files("loopstream.web")
_CONTROLS: Final = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
MARKS: Final = {"warn": "▲", "block": "■", "abort": "✖", "release": "○", "answer": "◆"}


def shown(text: str) -> str:
    """A text that can't steer anything: line feeds become ␊, what has no symbol U+FFFD."""
    return _CONTROLS.sub(_symbol, text)


def _symbol(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else "\ufffd"


def cleaned(value: Any, longest: int = 2_000) -> Any:
    """A JSON-like value of which every text is `shown`, and not endless."""
    if isinstance(value, str):
        return shown(value if len(value) <= longest else value[:longest] + "…")
    if isinstance(value, Mapping):
        return {shown(str(name)): cleaned(each, longest) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [cleaned(each, longest) for each in value]
    return value


def run_query(scope: str) -> str:
    """What names a run in an address: ``id=...``, or ``session=...`` of one without an id."""
    if scope.startswith(NO_RUN_PREFIX):
        return urlencode({"session": scope.removeprefix(NO_RUN_PREFIX)})
    return urlencode({"id": scope})


def run_name(scope: str) -> str:
    """What people call a run."""
    if scope.startswith(NO_RUN_PREFIX):
        return f"(no run) {scope.removeprefix(NO_RUN_PREFIX)}"
    return scope


def render(template: str, **values: Any) -> str:
    """A template filled in."""
    return _environment().get_template(template).render(**values)


@cache
def asset(name: str) -> str:
    """The address of a static file; it changes with its content, so it may be kept for ever."""
    digest = hashlib.sha256(static(name)).hexdigest()[:12]
    return f"/static/{name}?v={digest}"


@cache
def static(name: str) -> bytes:
    """A static file's bytes.

    Raises:
        FileNotFoundError: there is none of this name.
    """
    return (RESOURCES / "static" / name).read_bytes()


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalized,
        loader=jinja2.FunctionLoader(_template),
    )
    environment.filters |= {
        "clock": lambda millis: _time(millis).strftime("%H:%M:%S"),
        "moment": lambda millis: _time(millis).strftime("%Y-%m-%d %H:%M:%S UTC"),
        "iso": lambda millis: _time(millis).isoformat(timespec="milliseconds"),
        "run_query": run_query,
        "run_name": run_name,
        "query": lambda text: urlencode({"": text})[1:],
    }
    environment.globals |= {"asset": asset, "marks": MARKS}
    return environment


def _template(name: str) -> str:
    return (RESOURCES / "templates" / name).read_text(encoding="utf-8")


def _finalized(value: Any) -> Any:
    if isinstance(value, Markup):
        return value
    if isinstance(value, str):
        return shown(value)
    return "" if value is None else value


def _time(millis: int) -> datetime:
    # Data of a stranger's clock: beyond the calendar there is nothing to show.
    return datetime.fromtimestamp(min(millis, 253_402_300_799_000) / 1000, tz=UTC)
