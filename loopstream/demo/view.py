"""Shows the board: a live table on a terminal, else a line for each thing that happens."""

from __future__ import annotations

from types import TracebackType
from typing import Final, Protocol, Self

from rich import box
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from loopstream.demo.board import Board, Seen

_STYLES: Final = {
    "waiting": "dim",
    "running": "",
    "warned": "yellow",
    "blocked": "bold red",
    "aborted": "bold magenta",
    "done": "green",
}


class View(Protocol):
    """Follows a board while it is open."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    def refresh(self, board: Board) -> None:
        """The board may have changed."""
        ...


def table_of(board: Board) -> Table:
    """All runs as a table; texts are shown as they are, never as markup."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("agent", "does", "calls", "warned", "blocked calls", "status", "because"):
        right = name in {"calls", "warned", "blocked calls"}
        table.add_column(name, justify="right" if right else "left")
    for seen in board.all():
        table.add_row(
            Text(seen.agent),
            Text(seen.about),
            str(seen.calls),
            str(seen.warnings),
            str(seen.blocks),
            Text(seen.status, style=_STYLES[seen.status]),
            Text(because(seen)),
        )
    return table


def because(seen: Seen) -> str:
    """Detector and count of what was said last."""
    return f"{seen.detector}, {seen.count} times" if seen.detector else ""


class LiveView:
    """A table that changes in place."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, refresh_per_second=8, transient=True)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._live.__exit__(kind, error, traceback)

    def refresh(self, board: Board) -> None:
        """Draw the board anew."""
        self._live.update(table_of(board))


class LineView:
    """One line for each warning, block, abort and end."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._said: dict[str, tuple[str, int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        return None

    def refresh(self, board: Board) -> None:
        """Say what is new."""
        for seen in board.all():
            now = (seen.status, seen.warnings)
            if seen.status not in {"waiting", "running"} and self._said.get(seen.run) != now:
                self._said[seen.run] = now
                reason = f": {seen.reason}" if seen.reason else ""
                text = f"{seen.agent:<11} {seen.status:<8} after {seen.calls} calls{reason}"
                self._console.print(Text(text), soft_wrap=True)


def view_for(console: Console) -> View:
    """The view that fits the console."""
    return LiveView(console) if console.is_terminal else LineView(console)
