"""Signing in and out, and the actions: each is checked, written to the command topic, logged."""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, unquote_plus, urlsplit

from aiohttp import web

from loopstream.events.text import trim
from loopstream.web.access import SESSION_S, Session
from loopstream.web.board import now_ms
from loopstream.web.commands import ACTIONS, MAX_NAME, MAX_REASON, Action
from loopstream.web.render import run_name, shown
from loopstream.web.site import page, piece, session_of, site_of, user_of
from loopstream.wire.routing import scope_key

_PAUSE_S: Final = 0.5
_LOG: Final = logging.getLogger("loopstream.web")
# One guess at a time, each with a pause: who guesses gains nothing by asking often.
_GUESSES: Final = asyncio.Lock()


async def sign_in_page(request: web.Request) -> web.Response:
    """Where the token is asked for."""
    return page(request, "sign_in.html.j2", back=_back(request.query), wrong=False)


async def sign_in(request: web.Request) -> web.Response:
    """Take the token and give a session for it."""
    site, form = site_of(request), await request.post()
    _same_origin(request)
    token, back = str(form.get("token", "")), _back(form)
    async with _GUESSES:
        if not site.access.is_token(token):
            _LOG.warning("sign-in refused: wrong token, from %s", request.remote)
            await asyncio.sleep(_PAUSE_S)
            return page(request, "sign_in.html.j2", code=401, back=back, wrong=True)
    response = web.Response(status=303, headers={"Location": back})
    response.set_cookie(
        cookie_name(request),
        site.access.issue(),
        max_age=SESSION_S,
        httponly=True,
        samesite="Strict",
        secure=request.secure or request.headers.get("X-Forwarded-Proto") == "https",
    )
    return response


async def sign_out(request: web.Request) -> web.Response:
    """End the session in this browser."""
    await _allowed(request)
    response = web.Response(status=303, headers={"Location": "/"})
    response.del_cookie(cookie_name(request))
    return response


async def command(request: web.Request) -> web.Response:
    """Release a block of a run, or abort it; ``run`` names it as an address does (``id=...``)."""
    form = await _allowed(request)
    site = site_of(request)
    named = dict(parse_qsl(_text(form, "run")))
    scope = scope_key(named.get("id"), named.get("session"))
    action = _action(form)
    if scope is None or not site.board.knows(scope):
        raise web.HTTPNotFound(text=_unknown(_text(form, "run"), scope))
    reason, by = _words(request, form)
    offset = await site.desk.write(action, scope, reason, by)
    return _written(request, action, offset, reason, by, run_name(scope))


async def abort_agent(request: web.Request) -> web.Response:
    """Abort all runs of an agent: one command, which each takes up with its next event."""
    form = await _allowed(request)
    agent = unquote_plus(_text(form, "agent"))
    if form.get("sure") != "yes":
        raise web.HTTPBadRequest(text="Tick the box to confirm.")
    if not agent or not site_of(request).board.roll.live_of(agent, now_ms()):
        raise web.HTTPNotFound(text="No live run of this agent is known.")
    reason, by = _words(request, form)
    offset = await site_of(request).desk.write_to_agent("abort", agent, reason, by)
    return _written(request, "abort", offset, reason, by, f"all runs of {agent}")


def _unknown(named: str, scope: str | None) -> str:
    """Why a run was not found, and how it is named: by hand the ``id=`` is easily forgotten."""
    if scope is None:
        return f"run={shown(named[:128])} names no run: write run=id=RUN, or run=session=SESSION."
    return f"No worker knows the run {run_name(shown(scope[:128]))}."


def cookie_name(request: web.Request) -> str:
    """Cookies know no ports: dashboards of one host must not sign each other out."""
    return f"loopstream-{site_of(request).settings.prefix}"


def _written(
    request: web.Request, action: Action, offset: int, reason: str, by: str, what: str
) -> web.Response:
    _LOG.warning("%s of %s by %s: %s", action, shown(what), shown(by), shown(reason))
    if session_of(request) is None:
        return web.json_response({"action": action, "offset": offset})
    values: dict[str, Any] = {"action": action, "what": what, "offset": offset}
    if "HX-Request" in request.headers:
        return piece("done.html.j2", **values)
    return page(request, "done_page.html.j2", **values)


async def _allowed(request: web.Request) -> Mapping[str, Any]:
    """The form of someone who may act.

    Raises:
        HTTPForbidden: they have not signed in, or the form is not one of ours.
    """
    access = site_of(request).access
    if access.bearer(request.headers.get("Authorization")):
        return await request.post()
    session = session_of(request)
    if session is None:
        raise web.HTTPForbidden(text="Sign in with the operator's token first.")
    _same_origin(request)
    form = await request.post()
    _check_csrf(session, form)
    return form


def _check_csrf(session: Session, form: Mapping[str, Any]) -> None:

    if not hmac.compare_digest(_text(form, "csrf").encode(), session.csrf.encode()):
        raise web.HTTPForbidden(text="This form is out of date: load its page again.")


def _same_origin(request: web.Request) -> None:
    """Refuse what another site's page has sent."""
    site = request.headers.get("Sec-Fetch-Site")
    if site is None:
        origin = urlsplit(request.headers.get("Origin", "")).netloc
        site = "same-origin" if origin == request.host else "cross-site"
    if site != "same-origin":
        raise web.HTTPForbidden(text="This was sent by another site.")


def _action(form: Mapping[str, Any]) -> Action:
    for action in ACTIONS:
        if form.get("action") == action:
            return action
    raise web.HTTPBadRequest(text=f"An action is one of {', '.join(ACTIONS)}.")


def _words(request: web.Request, form: Mapping[str, Any]) -> tuple[str, str]:
    """Reason and name; the name is the proxy's where there is one."""
    reason, by = trim(_text(form, "reason")), user_of(request) or trim(_text(form, "by"))
    if not 0 < len(reason) <= MAX_REASON or not 0 < len(by) <= MAX_NAME:
        raise web.HTTPBadRequest(
            text=f"A reason of at most {MAX_REASON} and a name of at most {MAX_NAME} characters "
            "are needed: both are kept with the verdict."
        )
    return reason, by


def _text(form: Mapping[str, Any], name: str) -> str:
    value = form.get(name, "")
    return value if isinstance(value, str) else ""


def _back(form: Mapping[str, Any]) -> str:
    """Where to go after signing in: an address of ours, or the begin."""
    back = _text(form, "back")
    ours = back.startswith("/") and not back.startswith(("//", "/\\")) and back.isprintable()
    return back if ours and len(back) < 2_000 else "/"
