"""Agents of a club, for whoever manages them: what each may do, its keys, and how it is stopped."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Redirect

from lastcall.access.agents import service
from lastcall.access.agents.queries import AgentView, agents_of, keys_of, read_agent
from lastcall.access.agents.service import AgentFields
from lastcall.db.database import Database
from lastcall.errors import Conflict, Invalid, LastcallError, NotAllowed, NotFound
from lastcall.people.actor import Actor
from lastcall.people.agent_grants import AgentGrant
from lastcall.web.access import Access, Visitor, access
from lastcall.web.club import ClubPage, club_page
from lastcall.web.fields import known_id, read_seen, seen_text
from lastcall.web.pages import PageRequest, go_to, joined_fields
from lastcall.web.room import Web

SECTION = "staff"


@dataclass(frozen=True)
class Act:
    """One thing that a button does: what asks about it first has a title, a sentence and the words of its button."""

    do: Callable[[Database, Actor, UUID, UUID], Awaitable[Any]]
    title: str = ""
    sentence: str = ""
    button: str = ""


async def _rotate(db: Database, actor: Actor, club_id: UUID, agent_id: UUID) -> str:
    return (await service.rotate_key(db, actor, club_id, agent_id)).key


async def _replace(db: Database, actor: Actor, club_id: UUID, agent_id: UUID) -> str:
    return (await service.rotate_key(db, actor, club_id, agent_id, ends_old_at_once=True)).key


ACTS: dict[str, Act] = {
    "pause": Act(service.pause_agent),
    "resume": Act(service.resume_agent),
    "unblock": Act(service.unblock_agent),
    "responsible": Act(service.take_responsibility),
    "rotate": Act(_rotate),
    "replace": Act(
        _replace,
        "Replace the key now",
        "The agent's present keys are refused from the next call on. Use it when a key got into wrong hands.",
        "Replace it now",
    ),
    "claim": Act(service.refresh_claim),
    "revoke": Act(
        service.revoke_keys,
        "End every key",
        "The agent is refused from its next call on, until you make it a new key.",
        "End every key",
    ),
    "block": Act(
        service.block_agent,
        "Block the agent",
        "Its keys end at once, and it gets none until somebody unblocks it. What it asked for stays to be decided.",
        "Block it",
    ),
}
SHOWN = {"rotate": "key", "replace": "key", "claim": "claim secret"}
"""What makes something that is shown once."""


@get("/c/{slug:str}/agents", opt=access(Access.STAFF))
async def agents_page(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Response[str]:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        found = await agents_of(tx, visitor.actor, page.club.id)
    return web.pages.show(request, "agents.html", page.place(SECTION), page.now, agents=found)


@get("/c/{slug:str}/agents/{agent_id:str}", opt=access(Access.STAFF))
async def agent_page(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    agent_id: FromPath[str],
) -> Response[str]:
    return await _page(request, web, visitor, slug, agent_id)


@post("/c/{slug:str}/agents/{agent_id:str}", opt=access(Access.STAFF))
async def save_agent(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    agent_id: FromPath[str],
) -> Response[str] | Redirect:
    page, found = await _found(web, visitor, slug, agent_id)
    given = await joined_fields(request)
    ticked = given.get("grant", "").split()
    fields = AgentFields(
        given.get("name", ""),
        given.get("description"),
        frozenset(grant for grant in AgentGrant if grant in ticked),
    )
    seen = read_seen(given.get("seen", ""))
    try:
        await service.edit_agent(web.database, visitor.actor, page.club.id, found.id, fields, seen)
    except (Invalid, Conflict, NotAllowed) as error:
        return await _page(request, web, visitor, slug, agent_id, fields=fields, problem=error)
    return go_to(page.path(f"agents/{agent_id}"))


@get("/c/{slug:str}/agents/{agent_id:str}/{act:str}", opt=access(Access.STAFF))
async def ask_act(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    agent_id: FromPath[str],
    act: FromPath[str],
) -> Response[str]:
    page, found = await _found(web, visitor, slug, agent_id)
    known = _act(act)
    if not known.title:
        raise _nowhere()
    return web.pages.ask(
        request,
        "agent_ask.html",
        page.place(SECTION),
        page.now,
        title=known.title,
        agent=found,
        act=known,
        name=act,
    )


@post("/c/{slug:str}/agents/{agent_id:str}/{act:str}", opt=access(Access.STAFF))
async def do_act(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    agent_id: FromPath[str],
    act: FromPath[str],
) -> Response[str] | Redirect:
    page, found = await _found(web, visitor, slug, agent_id)
    try:
        made = await _act(act).do(web.database, visitor.actor, page.club.id, found.id)
    except (Conflict, NotAllowed) as error:
        return await _page(request, web, visitor, slug, agent_id, problem=error)
    if act not in SHOWN:
        return go_to(page.path(f"agents/{agent_id}"))
    return web.pages.show(
        request,
        "agent_secret.html",
        page.place(SECTION),
        page.now,
        agent=found,
        what=SHOWN[act],
        secret=made,
        is_first="claim" in SHOWN[act],
    )


async def _found(web: Web, visitor: Visitor, slug: str, agent_id: str) -> tuple[ClubPage, AgentView]:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        return page, await read_agent(tx, visitor.actor, page.club.id, known_id(agent_id))


async def _page(
    request: PageRequest,
    web: Web,
    visitor: Visitor,
    slug: str,
    agent_id: str,
    *,
    fields: AgentFields | None = None,
    problem: LastcallError | None = None,
) -> Response[str]:
    """What was typed stays; the next save is compared with the agent as it is now."""
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        found = await read_agent(tx, visitor.actor, page.club.id, known_id(agent_id))
        keys = await keys_of(tx, visitor.actor, page.club.id, found.id)
    return web.pages.show(
        request,
        "agent.html",
        page.place(SECTION),
        page.now,
        status=problem.status if problem else 200,
        agent=found,
        keys=keys,
        fields=fields or AgentFields(found.name, found.description, frozenset(found.grants)),
        grants=list(AgentGrant),
        seen=seen_text(found.version),
        me=visitor.actor.person_id,
        problem=problem,
    )


def _act(name: str) -> Act:
    known = ACTS.get(name)
    if known is None:
        raise _nowhere()
    return known


def _nowhere() -> NotFound:
    return NotFound("not_found", "There is no such page.")


HANDLERS = (agents_page, agent_page, save_agent, ask_act, do_act)
