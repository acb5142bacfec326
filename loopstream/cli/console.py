"""What people read: messages on stderr, tables on stdout, nothing that could move a cursor."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from loopstream.cli.hints import completed
from loopstream.errors import LoopstreamError

if TYPE_CHECKING:
    from rich.table import Table

DEBUG: ContextVar[bool] = ContextVar("DEBUG", default=False)

# Control characters and those that turn the direction of text: what strangers send is shown, and
# must neither steer the terminal nor lie about its order.
_UNSAFE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")

Row = Mapping[str, Any]


class Output(StrEnum):
    """Form of the data on stdout."""

    TABLE = "table"
    JSON = "json"
    NDJSON = "ndjson"


def safe(value: object) -> str:
    """A value as text for a terminal; what could steer it becomes U+FFFD."""
    if value is None:
        return ""
    if isinstance(value, Mapping | list | tuple):
        value = json.dumps(value, ensure_ascii=False, default=str)
    return _UNSAFE.sub("\ufffd", str(value))


def say(message: str) -> None:
    """One line of talk on stderr."""
    print(safe(message), file=sys.stderr, flush=True)  # noqa: T201


def complain(error: LoopstreamError) -> None:
    """An error as people should see it: what, where, and what to do next."""
    where = f"{error.where}: " if error.where else ""
    say(f"loopstream: {where}{error.message}")
    if error.hint:
        say(f"  {completed(error.hint)}")


def show(rows: Iterable[Row], columns: Sequence[str], output: Output) -> None:
    """Print rows on stdout.

    Args:
        rows: JSON-like values by name.
        columns: what a table shows, in order; the JSON forms show all.
        output: as a table and as one JSON array everything is gathered first; as NDJSON each row
            goes out at once.
    """
    if output is Output.NDJSON:
        for row in rows:
            print_json_line(row)
    elif output is Output.JSON:
        print(json.dumps(list(rows), ensure_ascii=False, indent=2))  # noqa: T201
    else:
        _table(rows, columns)


def print_json_line(row: Row) -> None:
    """One JSON object on a line of its own, flushed."""
    print(json.dumps(row, ensure_ascii=False), flush=True)  # noqa: T201


def print_line(text: str) -> None:
    """One line of data on stdout, flushed."""
    print(safe(text), flush=True)  # noqa: T201


def _table(rows: Iterable[Row], columns: Sequence[str]) -> None:
    from rich.console import Console

    table = table_of(rows, columns)
    # Off a terminal a table is as wide as its content: nothing is cut for a reader that scrolls.
    console = Console() if sys.stdout.isatty() else Console(width=10_000)
    console.print(table)


def table_of(rows: Iterable[Row], columns: Sequence[str]) -> Table:
    """Rows as a table for a terminal, made safe."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column.replace("_", " "), overflow="fold")
    for row in rows:
        table.add_row(*(Text(safe(row.get(column))) for column in columns))
    return table


def aligned(rows: Iterable[Row], columns: Mapping[str, int]) -> Iterator[str]:
    """Rows as lines of fixed columns, each as soon as it is there, below a line of names."""
    for number, row in enumerate(rows):
        if number == 0:
            yield _line({name: name.replace("_", " ") for name in columns}, columns)
        yield _line(row, columns)


def _line(row: Row, columns: Mapping[str, int]) -> str:
    cells = (safe(row.get(name)).ljust(width) for name, width in columns.items())
    return "  ".join(cells).rstrip()
