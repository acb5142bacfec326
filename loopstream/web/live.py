"""``/events``: verdicts and figures as server-sent events.

There is no queue for each browser: a stream is a place in the ring, and takes what has come since
whenever its browser has taken the last message. One that is too slow for the ring is told to load
its list again (``resync``), and so is one that comes back after too long.
"""

from __future__ import annotations

import asyncio
from typing import Final

from aiohttp import web

from loopstream.web.board import Board
from loopstream.web.choice import Choice
from loopstream.web.collapse import collapsed
from loopstream.web.cursor import decode
from loopstream.web.render import render
from loopstream.web.ring import Said

MAX_STREAMS: Final = 200
MAX_ROWS: Final = 200
"""Rows of one message; with more a browser loads its list again."""
_HEARTBEAT_S: Final = 10.0
_REST_S: Final = 0.25
_WRITE_S: Final = 30.0
_RETRY_MS: Final = 1_000


class Streams:
    """The open streams of one dashboard."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._open = 0
        self._closing = asyncio.Event()

    def close(self) -> None:
        """End all streams; browsers come back by themselves."""
        self._closing.set()
        self._board.wake()

    async def serve(self, request: web.Request, scope: str) -> web.StreamResponse:
        """One stream, until its browser leaves or the dashboard ends."""
        if self._open >= MAX_STREAMS:
            raise web.HTTPServiceUnavailable(text="too many open streams")
        response = web.StreamResponse(
            headers={
                "Content-Type": "text/event-stream; charset=utf-8",
                "Cache-Control": "no-store",
                "X-Accel-Buffering": "no",
            }
        )
        self._open += 1
        try:
            await response.prepare(request)
            after = request.headers.get("Last-Event-ID") or request.query.get("after")
            stream = Stream(self._board, Choice.of(request.query, scope), after)
            await self._pump(stream, response)
        except (ConnectionError, TimeoutError):
            pass  # it left, or takes nothing any more
        finally:
            self._open -= 1
        return response

    async def _pump(self, stream: Stream, response: web.StreamResponse) -> None:
        await response.write(f"retry: {_RETRY_MS}\n\n".encode())
        while not self._closing.is_set():
            if message := stream.message():
                await asyncio.wait_for(response.write(message), _WRITE_S)
            await asyncio.sleep(_REST_S)
            if not stream.behind and not await self._board.changed(_HEARTBEAT_S):
                stream.beat()


class Stream:
    """What one browser has been told.

    Args:
        after: the cursor of what it has seen; without one it has seen all there is.
    """

    def __init__(self, board: Board, choice: Choice, after: str | None) -> None:
        ring = board.ring
        cursor = decode(after, len(ring.nexts))
        self._board = board
        self._choice = choice
        self._fresh = [] if after is None else None if cursor is None else ring.after(cursor)
        self._number = ring.number
        self._version = board.version
        self._stats = ""
        self._beat = True

    @property
    def behind(self) -> bool:
        """Whether something has come since the last message."""
        return self._version < self._board.version

    def beat(self) -> None:
        """The next message is sent whether or not there is news."""
        self._beat = True

    def message(self) -> bytes:
        """All that is new, as events; empty: nothing is."""
        ring = self._board.ring
        since, fresh = ring.since(self._number), self._fresh
        news = None if fresh is None or since is None else fresh + since
        moved = news is None or bool(news) or self._beat
        self._number, self._fresh, self._beat = ring.number, [], False
        self._version = self._board.version
        parts = [] if not moved else [self._verdicts(news)]
        if (stats := self._board.stats()) != self._stats:
            self._stats = stats
            parts.append(_event("stats", stats))
        return "".join(parts).encode()

    def _verdicts(self, news: list[Said] | None) -> str:
        """An id without data moves the browser's cursor, and tells nobody."""
        mark = f"id: {self._board.ring.cursor}\n"
        if news is None:
            return mark + _event("resync", "1")
        chosen = [said for said in news if self._choice.takes(said.verdict)]
        if len(chosen) > MAX_ROWS:
            return mark + _event("resync", "1")
        if not chosen:
            return mark + "\n"
        rows = render("rows.html.j2", said=collapsed(chosen[::-1], MAX_ROWS))
        return mark + _event("verdicts", rows)


def _event(name: str, data: str) -> str:
    lines = "".join(f"data: {line}\n" for line in data.splitlines())
    return f"event: {name}\n{lines}\n"
