"""The invitations of a club as its staff see them: made, looked at, made again and taken back."""

from __future__ import annotations

from datetime import timedelta

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.response import Redirect

from lastcall.access.invites import (
    InviteKind,
    NewInvite,
    create_invite,
    renew_invite,
    revoke_all_invites,
    revoke_invite,
)
from lastcall.access.queries import InviteState, InviteView, invite, invites_page, uses_of_invite
from lastcall.access.tables import MOST_USES
from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import require
from lastcall.clubs.queries import roles_of
from lastcall.db.cursor import read_cursor
from lastcall.db.ids import encode_id
from lastcall.db.transaction import Reader
from lastcall.errors import Conflict, Invalid, LastcallError, NotFound
from lastcall.people.agent_grants import AgentGrant
from lastcall.people.scopes import Scope
from lastcall.web.access import Access, Visitor, access, browser_of
from lastcall.web.club import ClubPage, club_page
from lastcall.web.fields import known_id
from lastcall.web.pages import PageRequest, go_to, joined_fields
from lastcall.web.paging import older
from lastcall.web.room import Web
from lastcall.web.routes.door import who_waits

SECTION = "staff"
INVITES = "invites"
STATES = {
    InviteState.OPEN: "Open",
    InviteState.USED_UP: "Used",
    InviteState.EXPIRED: "Expired",
    InviteState.REVOKED: "Taken back",
}
KINDS = {InviteKind.PERSON: "A person", InviteKind.AGENT: "An agent", InviteKind.BOTH: "Either"}
LIVES = {1: "an hour", 24: "a day", 72: "three days", 168: "seven days", 720: "thirty days"}
"""How long an invitation may live, in hours, and what the form calls it."""
EMPTY = {
    "kind": InviteKind.PERSON.value,
    "email": "",
    "note": "",
    "approves": "yes",
    "life": "168",
    "max_uses": "1",
    "role": "",
    "grant": "",
}


@get("/c/{slug:str}/staff/invites", opt=access(Access.STAFF))
async def list_invites(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    after: FromQuery[str] = "",
    shown: FromQuery[str] = "",
) -> Response[str]:
    start = read_cursor(INVITES, after or None)
    wanted = InviteState(shown) if shown in set(InviteState) else None
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        found = await invites_page(tx, visitor.actor, page.club.id, state=wanted, after=start)
        may_decide = page.standing.holds(Permission.DECIDE_ACCESS) and start is None and wanted is None
        waiting = await who_waits(tx, visitor, page) if may_decide else {}
    path = page.path("staff/invites")
    return web.pages.show(
        request,
        "invites.html",
        page.place(SECTION),
        page.now,
        invites=found.invites,
        next=older(path, INVITES, found.next, shown=wanted or ""),
        states=STATES,
        wanted=wanted,
        may_decide=may_decide,
        **waiting,
    )


@get("/c/{slug:str}/staff/invites/new", opt=access(Access.STAFF))
async def new_invite_page(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    kind: FromQuery[str] = "",
) -> Response[str]:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        return await _form(request, web, visitor, tx, page, {"kind": kind} if kind in set(InviteKind) else {})


@post("/c/{slug:str}/staff/invites/new", opt=access(Access.STAFF))
async def make_invite(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Response[str]:
    """The answer shows the invitation's address, this once; its token is stored nowhere."""
    fields = EMPTY | await joined_fields(request)
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    try:
        kind = InviteKind(fields["kind"]) if fields["kind"] in set(InviteKind) else InviteKind.PERSON
        is_person = kind is InviteKind.PERSON
        made = await create_invite(
            web.database,
            visitor.actor,
            page.club.id,
            [] if kind is InviteKind.AGENT else [known_id(role) for role in fields["role"].split()],
            kind=kind,
            agent_grants=() if is_person else [one for one in AgentGrant if one in fields["grant"].split()],
            email=fields["email"] or None,
            approves=fields["approves"] != "no",
            note=fields["note"],
            life=timedelta(hours=_number(fields["life"])),
            max_uses=_number(fields["max_uses"]),
            mailer=web.mailer,
            source=browser_of(request, visitor).source,
        )
    except (Invalid, Conflict, NotFound) as error:
        async with web.database.read() as tx:
            page = await club_page(tx, visitor, slug)
            return await _form(request, web, visitor, tx, page, fields, problem=error)
    return await _made(request, web, visitor, page, made)


@get("/c/{slug:str}/staff/invites/{invite_id:str}", opt=access(Access.STAFF))
async def show_invite(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    invite_id: FromPath[str],
) -> Response[str]:
    page, found = await _one(web, visitor, slug, invite_id)
    async with web.database.read() as tx:
        uses = await uses_of_invite(tx, visitor.actor, page.club.id, found.id)
    return web.pages.show(
        request,
        "invite_uses.html",
        page.place(SECTION),
        page.now,
        invite=found,
        uses=uses,
        state_words=STATES,
    )


@get("/c/{slug:str}/staff/invites/{invite_id:str}/again", opt=access(Access.STAFF))
async def ask_again(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    invite_id: FromPath[str],
) -> Response[str]:
    page, found = await _one(web, visitor, slug, invite_id)
    place = page.place(SECTION)
    title = "Make an invitation again"
    return web.pages.ask(request, "invite_again_ask.html", place, page.now, title=title, invite=found)


@post("/c/{slug:str}/staff/invites/{invite_id:str}/again", opt=access(Access.STAFF))
async def make_again(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    invite_id: FromPath[str],
) -> Response[str]:
    """The same under a new address, which is shown this once; the old one is closed."""
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    made = await renew_invite(
        web.database,
        visitor.actor,
        page.club.id,
        known_id(invite_id),
        mailer=web.mailer,
        source=browser_of(request, visitor).source,
    )
    return await _made(request, web, visitor, page, made)


@get("/c/{slug:str}/staff/invites/{invite_id:str}/revoke", opt=access(Access.STAFF))
async def ask_revoke(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    invite_id: FromPath[str],
) -> Response[str]:
    page, found = await _one(web, visitor, slug, invite_id)
    place = page.place(SECTION)
    title = "Take an invitation back"
    return web.pages.ask(request, "invite_revoke_ask.html", place, page.now, title=title, invite=found)


@post("/c/{slug:str}/staff/invites/{invite_id:str}/revoke", opt=access(Access.STAFF))
async def revoke(
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    invite_id: FromPath[str],
) -> Redirect:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    await revoke_invite(web.database, visitor.actor, page.club.id, known_id(invite_id))
    return go_to(page.path("staff/invites"))


@get("/c/{slug:str}/staff/invites/revoke", opt=access(Access.STAFF))
async def ask_revoke_all(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Response[str]:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        await invites_page(tx, visitor.actor, page.club.id, limit=1)
    place = page.place(SECTION)
    title = "Take all invitations back"
    return web.pages.ask(request, "invite_revoke_all_ask.html", place, page.now, title=title)


@post("/c/{slug:str}/staff/invites/revoke", opt=access(Access.STAFF))
async def revoke_all(
    web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Redirect:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    await revoke_all_invites(web.database, visitor.actor, page.club.id)
    return go_to(page.path("staff/invites"))


async def _one(web: Web, visitor: Visitor, slug: str, invite_id: str) -> tuple[ClubPage, InviteView]:
    wanted = known_id(invite_id)
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        return page, await invite(tx, visitor.actor, page.club.id, wanted)


async def _made(
    request: PageRequest, web: Web, visitor: Visitor, page: ClubPage, made: NewInvite
) -> Response[str]:
    async with web.database.read() as tx:
        found = await invite(tx, visitor.actor, page.club.id, made.id)
    return web.pages.show(
        request,
        "invite_made.html",
        page.place(SECTION),
        page.now,
        address=web.address(f"/invites/{made.token}"),
        join_address=web.address("/api/v1/agent/join"),
        token=made.token,
        invite=found,
        has_mail=web.mailer.is_configured,
    )


async def _form(
    request: PageRequest,
    web: Web,
    visitor: Visitor,
    tx: Reader,
    page: ClubPage,
    fields: dict[str, str],
    *,
    problem: LastcallError | None = None,
) -> Response[str]:
    """What is wrong with a form is told to those who may have the form."""
    kinds = dict(KINDS)
    if not page.standing.holds(Permission.MANAGE_AGENTS):
        await require(tx, visitor.actor, page.club.id, Permission.MANAGE_STAFF, scope=Scope.READ)
        kinds = {InviteKind.PERSON: KINDS[InviteKind.PERSON]}
    elif not page.standing.holds(Permission.MANAGE_STAFF):
        kinds = {InviteKind.AGENT: KINDS[InviteKind.AGENT]}
    roles = [role for role in await roles_of(tx, page.club.id) if page.standing.may_hand_on(role.id)]
    chosen = EMPTY | {"role": encode_id(roles[0].id) if len(roles) == 1 else ""} | fields
    if chosen["kind"] not in kinds:
        chosen["kind"] = next(iter(kinds)).value
    return web.pages.show(
        request,
        "invite_new.html",
        page.place(SECTION),
        page.now,
        status=problem.status if problem else 200,
        roles=roles,
        kinds=kinds,
        lives=LIVES,
        grants=list(AgentGrant),
        most_uses=MOST_USES,
        fields=chosen,
        problem=problem,
        has_mail=web.mailer.is_configured,
    )


def _number(text: str) -> int:
    """A number that somebody chose; what is none is out of all bounds."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 5 else 0


HANDLERS = (
    list_invites,
    new_invite_page,
    make_invite,
    ask_revoke_all,
    revoke_all,
    show_invite,
    ask_again,
    make_again,
    ask_revoke,
    revoke,
)
