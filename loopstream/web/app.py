"""The dashboard put together: routes, what every answer carries, begin and end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Final
from urllib.parse import urlencode

from aiohttp import web

from loopstream.config import Settings
from loopstream.errors import LoopstreamError, SettingsError
from loopstream.runtime.settings import deployment_of
from loopstream.web import acting, pages
from loopstream.web.access import Access
from loopstream.web.archive import Archive
from loopstream.web.board import Board
from loopstream.web.commands import Desk
from loopstream.web.cursor import MAX_CURSOR
from loopstream.web.feed import Feed
from loopstream.web.live import Streams
from loopstream.web.render import static
from loopstream.web.site import SESSION, SITE, USER, Site, page, site_of
from loopstream.web.stories import Stories

MAX_BODY: Final = 64 * 1024
_READY_S: Final = 30.0
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_TYPES: Final = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_STATIC: Final = frozenset(
    (
        "app.css",
        "icon.svg",
        "live.js",
        "story.js",
        "theme.js",
        "vendor/htmx.min.js",
        "vendor/uplot.min.css",
        "vendor/uplot.min.js",
    )
)
# Needed to sign in, or harmless.
_ALWAYS: Final = ("/static/", "/sign-in", "/livez", "/readyz")
_LOG: Final = logging.getLogger("loopstream.web")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def make_app(settings: Settings, access: Access) -> web.Application:
    """The dashboard of a prefix; it reads Kafka while it runs."""
    board = Board(deployment_of(settings))
    streams, stories = Streams(board), Stories(settings)
    site = Site(settings, access, board, streams, stories, Desk(settings), Archive(settings))
    app = web.Application(middlewares=[_covered, _checked, _explained], client_max_size=MAX_BODY)
    app[SITE] = site
    app.cleanup_ctx.append(_fed)
    app.on_shutdown.append(_closing)
    app.on_response_prepare.append(_headers)
    app.add_routes(
        [
            web.get("/", pages.fleet),
            web.get("/events", pages.events),
            web.get("/runs", pages.runs),
            web.get("/run", pages.run),
            web.get("/run/story", pages.story),
            web.get("/search", pages.search),
            web.get("/verdict/{id:[0-9a-f]{32}}", pages.verdict),
            web.get("/settings", pages.settings),
            web.get("/operators", pages.operators),
            web.get("/sign-in", acting.sign_in_page),
            web.post("/sign-in", acting.sign_in),
            web.post("/sign-out", acting.sign_out),
            web.post("/command", acting.command),
            web.post("/abort-agent", acting.abort_agent),
            web.get("/static/{name:.+}", _static),
            web.get("/livez", _live),
            web.get("/readyz", _ready),
        ]
    )
    return app


async def serve(settings: Settings, stop: asyncio.Event, announce: Callable[[str], None]) -> None:
    """Serve until told to stop.

    Args:
        announce: told the address once pages can be loaded.

    Raises:
        SettingsError: it would be open to anyone, or the address can't be listened on.
        KafkaUnreachableError: no broker answers at the start.
    """
    access = Access(settings.web)
    runner = web.AppRunner(
        make_app(settings, access),
        access_log=None,
        max_field_size=2 * MAX_CURSOR,
        max_line_size=2 * MAX_CURSOR,
        shutdown_timeout=3.0,
    )
    try:
        if not await _set_up(runner, stop):
            return
        host, port = settings.web.host, settings.web.port
        site = web.TCPSite(runner, host, port)
        try:
            await site.start()
        except OSError as error:
            hint = "Choose another with --port, or 0 for any."
            message = f"can't listen there: {error.strerror}."
            raise SettingsError(message, where=f"web.port {host}:{port}", hint=hint) from None
        bound = runner.addresses[0][1]
        announce(f"http://{f'[{host}]' if ':' in host else host}:{bound}/")
        await stop.wait()
    finally:
        await runner.cleanup()


async def _set_up(runner: web.AppRunner, stop: asyncio.Event) -> bool:
    """Set up, unless told to stop meanwhile: the first look at Kafka may take its time."""
    setup, stopped = asyncio.ensure_future(runner.setup()), asyncio.ensure_future(stop.wait())
    await asyncio.wait({setup, stopped}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if not setup.done():
        setup.cancel()
        with suppress(asyncio.CancelledError):
            await setup
        return False
    await setup
    return True


async def _fed(app: web.Application) -> AsyncIterator[None]:
    site = app[SITE]
    if not isinstance(site, Site):
        raise TypeError("no site")
    feed = Feed(site.settings, site.board, asyncio.get_running_loop())
    feed.start()
    try:
        await _first_of(site.board.ready, feed.failed)
        if not site.board.ready.is_set() and feed.failure is not None:
            raise feed.failure
        yield
    finally:
        await asyncio.to_thread(feed.close)
        await site.stories.close()


async def _first_of(*events: asyncio.Event) -> None:
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, timeout=_READY_S, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waiting:
            one.cancel()


async def _closing(app: web.Application) -> None:
    site = app[SITE]
    if isinstance(site, Site):
        site.streams.close()


async def _headers(_: web.Request, response: web.StreamResponse) -> None:
    for name, value in _HEADERS.items():
        response.headers[name] = value
    response.headers.setdefault("Cache-Control", "no-store")


@web.middleware
async def _covered(request: web.Request, handler: Handler) -> web.StreamResponse:
    """What went wrong is told in words, and never in a traceback."""
    try:
        return await handler(request)
    except web.HTTPException:
        raise
    except asyncio.CancelledError:
        raise
    except Exception:  # noqa: BLE001 - the last net below every page
        _LOG.exception("a request failed")
        return web.Response(status=500, text="Something went wrong; the log of the server has it.")


@web.middleware
async def _checked(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Who asks, and whether they may."""
    site = site_of(request)
    access = site.access
    if (user := access.user(request.remote, request.headers)) is not None:
        request[USER] = user
    session = access.session(request.cookies.get(acting.cookie_name(request)))
    if session is not None:
        request[SESSION] = session
    if access.is_open():
        if not access.is_direct(request.host, request.headers):
            return web.Response(
                status=403,
                text="This dashboard is for this machine alone. Behind a proxy it takes "
                "web.user_header, or a token and an address that is not the loopback.",
            )
        return await handler(request)
    known = user or session or access.bearer(request.headers.get("Authorization"))
    if known or request.path.startswith(_ALWAYS):
        return await handler(request)
    if access.can_act and request.method == "GET" and "HX-Request" not in request.headers:
        raise web.HTTPSeeOther(f"/sign-in?{urlencode({'back': request.path_qs})}")
    return web.Response(status=401, text="Sign in first.")


@web.middleware
async def _explained(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Our errors and aiohttp's as pages; short texts where a part of a page was asked for."""
    try:
        return await handler(request)
    except LoopstreamError as error:
        status, message, hint = 503 if error.retriable else 400, error.message, error.hint
    except web.HTTPClientError as error:
        status, message, hint = error.status, error.text or error.reason, None
    if "HX-Request" in request.headers or request.method != "GET":
        return web.Response(status=status, text=f"{message} {hint or ''}".strip())
    return page(request, "error.html.j2", code=status, message=message, hint=hint)


async def _static(request: web.Request) -> web.Response:
    name = request.match_info["name"]
    if name not in _STATIC:
        raise web.HTTPNotFound(text="There is no such file.")
    kind = _TYPES[name.rpartition(".")[2]]
    response = web.Response(body=static(name), content_type=kind, charset="utf-8")
    response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
    response.enable_compression()
    return response


async def _live(_: web.Request) -> web.Response:
    return web.Response(text="live\n")


async def _ready(request: web.Request) -> web.Response:
    connected = site_of(request).board.connected
    text = "ready\n" if connected else "Kafka does not answer\n"
    return web.Response(status=200 if connected else 503, text=text)
