"""What the handlers of one dashboard share, and the frame that every page stands in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from loopstream.config import Settings
from loopstream.web.access import Access, Session
from loopstream.web.archive import Archive
from loopstream.web.board import Board
from loopstream.web.commands import Desk
from loopstream.web.live import Streams
from loopstream.web.render import render
from loopstream.web.stories import Stories
from loopstream.wire.routing import scope_key

SITE: Final = web.AppKey("site", object)
SESSION: Final = web.RequestKey("session", object)
USER: Final = web.RequestKey("user", object)
_MAX_ID: Final = 129


@dataclass(frozen=True, slots=True)
class Site:
    """One dashboard."""

    settings: Settings
    access: Access
    board: Board
    streams: Streams
    stories: Stories
    desk: Desk
    archive: Archive


def site_of(request: web.Request) -> Site:
    """The dashboard that a request is for."""
    site = request.app[SITE]
    if not isinstance(site, Site):
        raise TypeError("no site")
    return site


def session_of(request: web.Request) -> Session | None:
    """The session of whoever asks, if signed in."""
    session = request.get(SESSION)
    return session if isinstance(session, Session) else None


def user_of(request: web.Request) -> str | None:
    """Whom a trusted proxy names."""
    user = request.get(USER)
    return user if isinstance(user, str) else None


def scope_of(request: web.Request) -> str:
    """The run that an address names by ``id`` or ``session``.

    Raises:
        HTTPBadRequest: it names none.
    """
    query = request.query
    scope = scope_key(query.get("id"), query.get("session"))
    if scope is None or len(scope) > _MAX_ID or scope == "\0":
        raise web.HTTPBadRequest(text="An address names a run by id= or session=.")
    return scope


def page(request: web.Request, template: str, *, code: int = 200, **values: Any) -> web.Response:
    """A whole page."""
    site = site_of(request)
    text = render(
        template,
        path=request.path,
        here="/" if request.path.startswith("/sign") else request.path_qs,
        prefix=site.settings.prefix,
        connected=site.board.connected,
        session=session_of(request),
        user=user_of(request),
        can_act=site.access.can_act,
        **values,
    )
    return _html(text, code)


def piece(template: str, **values: Any) -> web.Response:
    """A part of a page."""
    return _html(render(template, **values), 200)


def _html(text: str, code: int) -> web.Response:
    # What JSON escapes brought as lone surrogates was shown as symbols; nothing else can't encode.
    response = web.Response(text=text, status=code, content_type="text/html", charset="utf-8")
    response.enable_compression()
    return response
