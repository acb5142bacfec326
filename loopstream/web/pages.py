"""The pages that are read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import islice
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from aiohttp import web

from loopstream.errors import UsageError
from loopstream.events.summary import RunSummary
from loopstream.partition.settings import EVERYONE, SettingsInForce
from loopstream.policy.advice import Note, NoteKind, explain
from loopstream.policy.deployment import Mode, Profile
from loopstream.policy.extended_settings import view_in_force
from loopstream.policy.in_force import Blocks, modes
from loopstream.policy.settings import refuse
from loopstream.web.board import Block, Board, Command, now_ms
from loopstream.web.choice import FIELDS, Choice
from loopstream.web.collapse import collapsed
from loopstream.web.facts import facts_of
from loopstream.web.render import cleaned, run_query
from loopstream.web.site import page, piece, scope_of, site_of
from loopstream.web.strip import strip_of
from loopstream.wire.routing import scope_key

MAX_ROWS: Final = 100
MAX_RUNS: Final = 200
MAX_AGENTS: Final = 100
_STATUSES: Final = ("active", "warned", "blocked", "aborted", "ended")
_ACTIONS: Final = ("warn", "block", "release", "abort", "answer")


async def fleet(request: web.Request) -> web.Response:
    """Verdicts as they come, figures, filters."""
    board, choice = site_of(request).board, Choice.of(request.query)
    response = page(
        request,
        "fleet.html.j2",
        choice=choice,
        said=choice.pick(board.ring.newest(), MAX_ROWS),
        stats=board.figures(),
        events=f"/events?{_joined(choice.query, after=board.ring.cursor)}",
        actions=_ACTIONS,
        known=_known(request),
        limit=MAX_ROWS,
        undecodable=board.undecodable,
        unsigned=board.unsigned,
    )
    if "HX-Request" in request.headers:
        response.headers["HX-Push-Url"] = f"/?{choice.query}" if choice.query else "/"
    return response


async def events(request: web.Request) -> web.StreamResponse:
    """Server-sent events; of one run where the address names one."""
    query = request.query
    scope = scope_of(request) if "id" in query or "session" in query else ""
    return await site_of(request).streams.serve(request, scope)


async def runs(request: web.Request) -> web.Response:
    """Runs by standing and agent; what is left of a search."""
    site, query = site_of(request), request.query
    status, agent = query.get("status", ""), query.get("agent", "").strip()
    text, now = query.get("q", "").strip(), now_ms()

    def wanted(run: RunSummary) -> bool:
        if status == "live":
            standing = site.board.roll.is_live(run, now)
        else:
            standing = status in {"", run.status}
        named = not text or text in (run.run or run.session or "")
        return standing and named and agent in {"", run.agent}

    roll = site.board.roll
    found = list(islice(filter(wanted, roll.newest()), MAX_RUNS))
    return page(
        request,
        "runs.html.j2",
        runs=found,
        status=status,
        agent=agent,
        q=text,
        statuses=("live", *_STATUSES),
        live=len(roll.live_of(agent, now)) if agent else 0,
        known=_known(request),
        limit=MAX_RUNS,
        total=len(roll),
        forgotten=roll.forgotten,
    )


async def search(request: web.Request) -> web.Response:
    """To the run of this id, or to the runs that have the text in it."""
    text = request.query.get("q", "").strip()
    scope = scope_key(text[:512], None)
    if scope is not None and site_of(request).board.knows(scope):
        raise web.HTTPSeeOther(f"/run?{run_query(scope)}")
    raise web.HTTPSeeOther(f"/runs?{urlencode({'q': text[:512]})}")


async def run(request: web.Request) -> web.Response:
    """One run: standing, verdicts, what may be done. Its story is loaded by the page itself."""
    site, scope = site_of(request), scope_of(request)
    board = site.board
    summary, said = board.roll.get(scope), board.said_of(scope)
    agent = summary.agent if summary else said[0].verdict.agent if said else None
    return page(
        request,
        "run.html.j2",
        scope=scope,
        summary=summary,
        said=collapsed(said, MAX_ROWS),
        agent=agent,
        commands=[each for each in board.commands if _is_for(each, scope, agent)][:50],
        events=f"/events?{run_query(scope)}&{urlencode({'after': board.ring.cursor})}",
        code=200 if summary or said else 404,
    )


def _is_for(command: Command, scope: str, agent: str | None) -> bool:
    return command.key == (agent if command.all_of_agent else scope)


async def story(request: web.Request) -> web.Response:
    """A run's story, replayed from the log; a part of its page."""
    site, scope = site_of(request), scope_of(request)
    try:
        said = site.board.said_of(scope)
        happened = await site.stories.tell(scope, said[0].number if said else 0)
    except UsageError as error:
        return piece("no_story.html.j2", error=error)
    strip = strip_of(happened)
    return piece("story.html.j2", strip=strip, data=json.dumps(strip.entries))


async def verdict(request: web.Request) -> web.Response:
    """One verdict; its address stays the same as long as the topic keeps it."""
    site, verdict_id = site_of(request), request.match_info["id"]
    said = site.board.ring.get(verdict_id)
    if said is None and (position := request.query.get("at")) is not None:
        said = await site.archive.find(verdict_id, position)
    if said is None:
        raise web.HTTPNotFound(
            text="This verdict is not among those that are held. Its full address (with at=) "
            "finds it for as long as the topic keeps it."
        )
    return page(request, "verdict.html.j2", item=said, verdict=said.verdict)


async def settings(request: web.Request) -> web.Response:
    """Detector settings as they were pushed and what they come to; the deployment's policy."""
    site = site_of(request)
    board = site.board
    facts = facts_of(board, await site.archive.pins.find())
    told = _Told(board, facts.profile or board.deployment.profile, facts.mode or "enforce")
    blocks = sorted(board.blocks.values(), key=lambda block: (block.key != EVERYONE, block.key))
    return page(
        request,
        "settings.html.j2",
        facts=facts,
        assumed=told.profile,
        everyone=told.resolved(None),
        modes=told.modes(None),
        blocks=[told.block(block) for block in blocks[:MAX_AGENTS]],
        hidden=max(0, len(blocks) - MAX_AGENTS),
        total=len(blocks),
    )


async def operators(request: web.Request) -> web.Response:
    """What operators asked for, the newest first."""
    return page(request, "operators.html.j2", commands=list(site_of(request).board.commands)[:200])


class _Told(NamedTuple):
    """What blocks come to under a profile and a mode of the deployment."""

    board: Board
    profile: Profile
    mode: Mode

    def block(self, block: Block) -> dict[str, Any]:
        """One block as it was pushed, and what its agent's settings come to."""
        text = block.text or ""
        try:
            parsed = json.loads(text)
            why = refuse(parsed)
            pretty = json.dumps(parsed, indent=2, ensure_ascii=False)
        except (ValueError, RecursionError):
            why, pretty = "not JSON", text
        lines = [cleaned(line, 500) for line in pretty.splitlines()[:400]]
        notes = [] if why else [n.text for n in explain(parsed, self.profile) if _lost(n)]
        shown = {"block": block, "lines": lines, "why": why, "notes": cleaned(notes, 500)}
        if block.key == EVERYONE:
            return shown | {"rows": [], "modes": []}
        return shown | {"rows": self.resolved(block.key), "modes": self.modes(block.key)}

    def resolved(self, agent: str | None) -> list[tuple[str, str]]:
        """What an agent's blocks come to, as dotted names and values."""
        in_force = SettingsInForce(self.profile)
        for key in (EVERYONE, agent):
            if key is not None and (block := self.board.blocks.get(key)) is not None:
                in_force.put(key, block.text)
        view = view_in_force(in_force.limits(agent))
        return list(_leaves({name: view[name] for name in ("resolved", "guard")}))

    def modes(self, agent: str | None) -> list[tuple[str, str, str]]:
        """How far an agent's detectors are acted on: detector, mode, and where that is from."""
        blocks = self.board.blocks
        everyone, own = _taken(blocks.get(EVERYONE)), _taken(blocks.get(agent or ""))
        found = modes(self.profile, Blocks(everyone, agent, own), deployment=self.mode)
        return [*found]


def _lost(note: Note) -> bool:
    return note.kind in {NoteKind.IGNORED, NoteKind.UNKNOWN_KEY}


def _taken(block: Block | None) -> dict[str, Any] | None:
    """A block's fields, if workers take it."""
    try:
        parsed = json.loads(block.text or "") if block is not None else None
    except (ValueError, RecursionError):
        return None
    return parsed if refuse(parsed) is None else None


def _leaves(tree: dict[str, Any], path: str = "") -> Iterable[tuple[str, str]]:
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{path}{name}.")
        else:
            shown = json.dumps(value) if not isinstance(value, str) else value
            yield f"{path}{name}".removeprefix("resolved."), shown


def _known(request: web.Request) -> dict[str, list[str]]:
    """Names to offer in the filters: what the newest verdicts and runs have."""
    board = site_of(request).board
    found: dict[str, set[str]] = {name: set() for name in FIELDS}
    for said in islice(board.ring.newest(), 2_000):
        for name in ("agent", "tool", "detector"):
            if value := getattr(said.verdict, name):
                found[name].add(value)
    for summary in islice(board.roll.newest(), 2_000):
        if summary.agent:
            found["agent"].add(summary.agent)
    return {name: sorted(values)[:200] for name, values in found.items()}


def _joined(query: str, **more: str) -> str:
    return "&".join(part for part in (query, urlencode(more)) if part)
