"""Connection: the club's link to its VRChat group, for whoever looks after it."""

from __future__ import annotations

import re
from dataclasses import replace

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Redirect

from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import require, require_owner
from lastcall.clubs.queries import role
from lastcall.clubs.roles import edit_role, fields_of
from lastcall.connections.connect import connect_club
from lastcall.connections.features import switch_feature
from lastcall.connections.signals import CONNECTION_TOPIC
from lastcall.connections.states import Feature
from lastcall.db.transaction import Reader
from lastcall.errors import Conflict, Invalid, LastcallError, NotFound
from lastcall.people.scopes import Scope
from lastcall.web.access import Access, Visitor, access
from lastcall.web.club import ClubPage, club_page
from lastcall.web.connection import Sight, counted, role_choices, sight_of
from lastcall.web.connection_acts import ACTS, Act
from lastcall.web.connection_words import ACCOUNTS, COVERAGE, FEATURES, GUIDELINES, RISKS, STATES, fault_of
from lastcall.web.fields import known_id, read_seen, seen_text
from lastcall.web.looks import obstacle
from lastcall.web.pages import PageRequest, form_fields, go_to, is_fragment, joined_fields
from lastcall.web.room import Web

_GROUP_IN_TEXT = re.compile(r"grp_[A-Za-z0-9_-]{1,96}")
SECTION = "connection"
USUAL = {"group_id": "", "accepts": "", "feature": "membership_management posts instances"}
"""The form before anybody touched it: what looks at the group all the time is for the person to choose."""


@get("/c/{slug:str}/connection", opt=access(Access.STAFF))
async def connection_page(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Response[str]:
    return await _show(request, web, visitor, slug)


@post("/c/{slug:str}/connection", opt=access(Access.STAFF))
async def connect(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Response[str] | Redirect:
    async with web.database.read() as tx:
        page = await _page(tx, visitor, slug)
    fields = await joined_fields(request)
    try:
        _require_accepted(fields)
        await connect_club(
            web.database,
            visitor.actor,
            page.club.id,
            group_id=_group_in(fields.get("group_id", "")),
            account_id=None,
            features=[feature for feature in Feature if feature in fields.get("feature", "").split()],
        )
    except (Invalid, Conflict) as error:
        return await _show(request, web, visitor, slug, fields=fields, problem=error)
    return go_to(page.path("connection"))


@get("/c/{slug:str}/connection/features/{feature:str}", opt=access(Access.STAFF))
async def ask_feature(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    feature: FromPath[str],
) -> Response[str]:
    """The question before a feature is switched: what is refused without it, or what it needs."""
    page, sight = await _connected(web, visitor, slug)
    chosen = _known_feature(feature)
    view = next(view for view in sight.features if view.feature is chosen)
    return web.pages.ask(
        request,
        "connection_feature_ask.html",
        page.place(SECTION),
        page.now,
        title=view.feature.label,
        view=view,
        sight=sight,
        words=FEATURES[chosen],
        unsent=counted(sight.unsent_of(chosen)),
    )


@post("/c/{slug:str}/connection/features/{feature:str}", opt=access(Access.STAFF))
async def throw_feature(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    feature: FromPath[str],
) -> Redirect:
    page, sight = await _connected(web, visitor, slug)
    is_on = (await form_fields(request)).get("on") == "yes"
    await switch_feature(
        web.database,
        visitor.actor,
        page.club.id,
        sight.card.connection_id,
        _known_feature(feature),
        is_on=is_on,
    )
    return go_to(page.path("connection"))


@get("/c/{slug:str}/connection/roles/{role_id:str}", opt=access(Access.STAFF))
async def allowlist_page(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    role_id: FromPath[str],
) -> Response[str]:
    """Which of the group's roles a staff role may give and take."""
    return await _show_allowlist(request, web, visitor, slug, role_id)


@post("/c/{slug:str}/connection/roles/{role_id:str}", opt=access(Access.STAFF))
async def save_allowlist(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    role_id: FromPath[str],
) -> Response[str] | Redirect:
    page, _ = await _connected(web, visitor, slug)
    async with web.database.read() as tx:
        found = await role(tx, visitor.actor, page.club.id, known_id(role_id))
    fields = await joined_fields(request)
    chosen = frozenset(fields.get("provider_role", "").split())
    try:
        await edit_role(
            web.database,
            visitor.actor,
            page.club.id,
            found.id,
            replace(fields_of(found), provider_role_ids=chosen),
            read_seen(fields.get("seen", "")),
        )
    except (Invalid, Conflict) as error:
        return await _show_allowlist(request, web, visitor, slug, role_id, chosen=chosen, problem=error)
    return go_to(page.path("connection"))


@get("/c/{slug:str}/connection/{act:str}", opt=access(Access.STAFF))
async def ask(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    act: FromPath[str],
) -> Response[str]:
    """The question before an act; whoever must confirm that it is them does that first."""
    page, sight = await _connected(web, visitor, slug)
    chosen = _known_act(act)
    if chosen.needs_confirming:
        visitor.actor.require_recent()
    return web.pages.ask(
        request,
        "connection_ask.html",
        page.place(SECTION),
        page.now,
        title=chosen.button,
        act=chosen,
        key=act,
        sight=sight,
        unsent=counted(sight.unsent_of()),
    )


@post("/c/{slug:str}/connection/{act:str}", opt=access(Access.STAFF))
async def do(
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    act: FromPath[str],
) -> Redirect:
    page, sight = await _connected(web, visitor, slug)
    await _known_act(act).do(web.database, visitor.actor, page.club.id, sight.card.connection_id)
    return go_to(page.path("connection"))


async def _show(
    request: PageRequest,
    web: Web,
    visitor: Visitor,
    slug: str,
    *,
    fields: dict[str, str] | None = None,
    problem: LastcallError | None = None,
) -> Response[str]:
    async with web.database.read() as tx:
        page = await _page(tx, visitor, slug)
        seen = web.live.mark((page.club.id, CONNECTION_TOPIC))
        sight = await sight_of(tx, page.club.id)
    return web.pages.show(
        request,
        "connection_live.html" if is_fragment(request) else "connection.html",
        page.place(SECTION),
        page.now,
        status=problem.status if problem else 200,
        seen=seen,
        sight=sight,
        acts=[] if sight is None else [(key, act) for key, act in ACTS.items() if act.is_offered(sight)],
        obstacle=None if sight is None else obstacle(sight.card.obstacle),
        fault=None if sight is None else fault_of(sight.health.last_fault),
        states=STATES,
        accounts=ACCOUNTS,
        coverage_words=COVERAGE,
        features=FEATURES,
        is_waited_for=sight is not None
        and any(one.is_waiting and one.account_id == sight.card.account_id for one in web.presence()),
        risks=RISKS,
        guidelines=GUIDELINES,
        fields=USUAL if fields is None else dict.fromkeys(USUAL, "") | fields,
        problem=problem,
    )


async def _show_allowlist(
    request: PageRequest,
    web: Web,
    visitor: Visitor,
    slug: str,
    role_id: str,
    *,
    chosen: frozenset[str] | None = None,
    problem: LastcallError | None = None,
) -> Response[str]:
    async with web.database.read() as tx:
        page = await _page(tx, visitor, slug)
        await require_owner(tx, visitor.actor, page.club.id, scope=Scope.READ)
        sight = _sight(await sight_of(tx, page.club.id))
        found = await role(tx, visitor.actor, page.club.id, known_id(role_id))
    ticked = found.provider_role_ids if chosen is None else chosen
    return web.pages.show(
        request,
        "connection_role.html",
        page.place(SECTION),
        page.now,
        status=problem.status if problem else 200,
        role=found,
        seen=seen_text(found.updated_at),
        choices=role_choices(sight.card, ticked),
        ticked=ticked,
        sight=sight,
        problem=problem,
    )


async def _page(tx: Reader, visitor: Visitor, slug: str) -> ClubPage:
    """Raises ``NotAllowed`` for staff who do not look after the connection."""
    page = await club_page(tx, visitor, slug)
    await require(tx, visitor.actor, page.club.id, Permission.MANAGE_CONNECTION, scope=Scope.READ)
    return page


async def _connected(web: Web, visitor: Visitor, slug: str) -> tuple[ClubPage, Sight]:
    async with web.database.read() as tx:
        page = await _page(tx, visitor, slug)
        return page, _sight(await sight_of(tx, page.club.id))


def _sight(sight: Sight | None) -> Sight:
    if sight is None:
        raise NotFound("not_found", "There is no such page: the club is not connected to a group.")
    return sight


def _group_in(text: str) -> str:
    """The id in what was pasted, which may be the address of the group's page; else the text itself."""
    found = _GROUP_IN_TEXT.search(text)
    return text.strip() if found is None else found[0]


def _require_accepted(fields: dict[str, str]) -> None:
    if fields.get("accepts") != "yes":
        raise Invalid(
            "risk_not_accepted",
            "Tick the box first.",
            advice="Nothing is connected before somebody has read what it means.",
            field="accepts",
        )


def _known_feature(text: str) -> Feature:
    if text not in {feature.value for feature in Feature}:
        raise NotFound("not_found", "There is no such page.")
    return Feature(text)


def _known_act(key: str) -> Act:
    if key not in ACTS:
        raise NotFound("not_found", "There is no such page.")
    return ACTS[key]


HANDLERS = (
    connection_page,
    connect,
    ask_feature,
    throw_feature,
    allowlist_page,
    save_allowlist,
    ask,
    do,
)
