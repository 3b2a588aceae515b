"""The door of a club as its staff see it: invitations, and the requests that wait for a decision."""

from __future__ import annotations

from typing import Any

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.response import Redirect

from lastcall.access.deciding import approve_join_request, reject_join_request
from lastcall.access.invites import create_invite, revoke_invite
from lastcall.access.queries import invite, invites_page
from lastcall.access.request_queries import join_request, join_requests_page
from lastcall.access.requests import RequestStatus
from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import require
from lastcall.clubs.queries import roles_of
from lastcall.db.cursor import Cursor, read_cursor, write_cursor
from lastcall.db.ids import encode_id
from lastcall.db.transaction import Reader
from lastcall.errors import Conflict, Invalid, LastcallError, NotAllowed, NotFound
from lastcall.people.scopes import Scope
from lastcall.web.access import Access, Visitor, access, browser_of
from lastcall.web.club import ClubPage, club_page
from lastcall.web.fields import known_id
from lastcall.web.pages import PageRequest, form_fields, go_to
from lastcall.web.room import Web

SECTION = "staff"
DECISIONS = {"approve": approve_join_request, "reject": reject_join_request}
INVITES, REQUESTS = "invites", "join_requests"
PAGE = 50  # invitations


@get("/c/{slug:str}/staff/invites", opt=access(Access.STAFF))
async def list_invites(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    after: FromQuery[str] = "",
) -> Response[str]:
    start = read_cursor(INVITES, after or None)
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        found = await invites_page(tx, visitor.actor, page.club.id, after=start, limit=PAGE)
        may_decide = page.standing.holds(Permission.DECIDE_ACCESS) and start is None
        waiting = await _waiting(tx, visitor, page) if may_decide else {}
    return web.pages.show(
        request,
        "invites.html",
        page.place(SECTION),
        page.now,
        invites=found.invites,
        next=write_cursor(INVITES, found.next) if found.next else None,
        may_decide=may_decide,
        **waiting,
    )


@get("/c/{slug:str}/staff/invites/new", opt=access(Access.STAFF))
async def new_invite_page(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Response[str]:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        await require(tx, visitor.actor, page.club.id, Permission.MANAGE_STAFF, scope=Scope.READ)
        return await _form(request, web, tx, page)


@post("/c/{slug:str}/staff/invites/new", opt=access(Access.STAFF))
async def make_invite(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Response[str]:
    """The answer shows the invitation's address, this once; its token is stored nowhere."""
    fields = await form_fields(request)
    chosen = [str(role) for role in (await request.form()).getall("role", [])]
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    try:
        made = await create_invite(
            web.database,
            visitor.actor,
            page.club.id,
            [known_id(role) for role in chosen],
            email=fields.get("email") or None,
            approves=fields.get("approves") != "no",
            note=fields.get("note"),
            mailer=web.mailer,
            source=browser_of(request, visitor).source,
        )
    except (Invalid, Conflict, NotFound) as error:
        async with web.database.read() as tx:
            page = await club_page(tx, visitor, slug)
            # What is wrong with a form is told to those who may have the form.
            await require(tx, visitor.actor, page.club.id, Permission.MANAGE_STAFF, scope=Scope.READ)
            return await _form(request, web, tx, page, fields=fields, chosen=chosen, problem=error)
    return web.pages.show(
        request,
        "invite_made.html",
        page.place(SECTION),
        page.now,
        address=web.address(f"/invites/{made.token}"),
        mailed_to=(fields.get("email") or "").strip(),
    )


@get("/c/{slug:str}/staff/invites/{invite_id:str}/revoke", opt=access(Access.STAFF))
async def ask_revoke(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    invite_id: FromPath[str],
) -> Response[str]:
    wanted = known_id(invite_id)
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        found = await invite(tx, visitor.actor, page.club.id, wanted)
    return web.pages.ask(
        request,
        "invite_revoke_ask.html",
        page.place(SECTION),
        page.now,
        title="Take an invitation back",
        invite=found,
    )


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


@get("/c/{slug:str}/join-requests", opt=access(Access.STAFF))
async def list_requests(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    after: FromQuery[str] = "",
) -> Response[str]:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        waiting = await _waiting(tx, visitor, page, read_cursor(REQUESTS, after or None))
    return web.pages.show(request, "join_requests.html", page.place("door"), page.now, **waiting)


@get("/c/{slug:str}/join-requests/{request_id:str}", opt=access(Access.STAFF))
async def show_request(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    request_id: FromPath[str],
) -> Response[str]:
    return await _request_page(request, web, visitor, slug, request_id)


@post("/c/{slug:str}/join-requests/{request_id:str}", opt=access(Access.STAFF))
async def decide(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    request_id: FromPath[str],
) -> Response[str] | Redirect:
    fields = await form_fields(request)
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    act = DECISIONS.get(fields.get("decision", ""))
    if act is None:
        raise Invalid("decision_unknown", "Nothing was decided.", advice="Press one of the two buttons.")
    try:
        await act(web.database, visitor.actor, page.club.id, known_id(request_id), note=fields.get("note"))
    except (Invalid, NotAllowed, Conflict) as error:
        return await _request_page(
            request, web, visitor, slug, request_id, note=fields.get("note", ""), problem=error
        )
    return go_to(page.path("join-requests"))


async def _waiting(
    tx: Reader, visitor: Visitor, page: ClubPage, after: Cursor | None = None
) -> dict[str, Any]:
    """What ``door.html`` shows: who waits, and where the next page begins."""
    found = await join_requests_page(
        tx, visitor.actor, page.club.id, status=RequestStatus.PENDING, after=after
    )
    return {
        "waiting": found.requests,
        "waiting_next": write_cursor(REQUESTS, found.next) if found.next else None,
    }


async def _request_page(
    request: PageRequest,
    web: Web,
    visitor: Visitor,
    slug: str,
    request_id: str,
    *,
    note: str = "",
    problem: LastcallError | None = None,
) -> Response[str]:
    wanted = known_id(request_id)
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        found = await join_request(tx, visitor.actor, page.club.id, wanted)
    is_note = problem is not None and problem.field == "note"
    return web.pages.show(
        request,
        "join_request.html",
        page.place("door"),
        page.now,
        status=problem.status if problem else 200,
        one=found,
        note=note,
        problem=None if is_note else problem,
        note_problem=problem.sentence if problem and is_note else None,
    )


async def _form(
    request: PageRequest,
    web: Web,
    tx: Reader,
    page: ClubPage,
    *,
    fields: dict[str, str] | None = None,
    chosen: list[str] | None = None,
    problem: LastcallError | None = None,
) -> Response[str]:
    roles = [role for role in await roles_of(tx, page.club.id) if page.standing.may_hand_on(role.id)]
    return web.pages.show(
        request,
        "invite_new.html",
        page.place(SECTION),
        page.now,
        status=problem.status if problem else 200,
        roles=roles,
        chosen=chosen or ([encode_id(roles[0].id)] if len(roles) == 1 else []),
        fields={"email": "", "note": "", "approves": "yes"} | (fields or {}),
        problem=problem,
        has_mail=web.mailer.is_configured,
    )


HANDLERS = (
    list_invites,
    new_invite_page,
    make_invite,
    ask_revoke,
    revoke,
    list_requests,
    show_request,
    decide,
)
