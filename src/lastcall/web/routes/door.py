"""The door of a club as its staff see it: the requests that wait for a decision, and what became of others."""

from __future__ import annotations

from typing import Any

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.response import Redirect

from lastcall.access.deciding import (
    Outcome,
    Verdict,
    approve_join_request,
    decide_many,
    delete_join_request,
    reject_join_request,
)
from lastcall.access.request_queries import JoinRequestView, join_request, join_requests_page
from lastcall.access.requests import RequestStatus
from lastcall.db.cursor import Cursor, read_cursor
from lastcall.db.transaction import Reader
from lastcall.errors import Conflict, Invalid, LastcallError, NotAllowed
from lastcall.people.agent_grants import AgentGrant
from lastcall.web.access import Access, Visitor, access
from lastcall.web.club import ClubPage, club_page
from lastcall.web.fields import known_id
from lastcall.web.pages import PageRequest, go_to, joined_fields
from lastcall.web.paging import older
from lastcall.web.room import Web

SECTION = "door"
REQUESTS = "join_requests"
STATUSES = {
    RequestStatus.PENDING: "Waiting",
    RequestStatus.APPROVED: "Let in",
    RequestStatus.REJECTED: "Turned down",
    RequestStatus.WITHDRAWN: "Withdrawn",
}


@get("/c/{slug:str}/join-requests", opt=access(Access.STAFF))
async def list_requests(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    after: FromQuery[str] = "",
    shown: FromQuery[str] = "",
) -> Response[str]:
    return await _list(request, web, visitor, slug, after=after, shown=shown)


@post("/c/{slug:str}/join-requests", opt=access(Access.STAFF))
async def decide_ticked(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Response[str] | Redirect:
    """Decide all that are ticked alike. Those that could not be decided are told one by one, with the reason."""
    fields = await joined_fields(request)
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    ticked = [known_id(one) for one in fields.get("request", "").split()]
    verdict = fields.get("decision", "")
    if verdict not in set(Verdict):
        raise Invalid("decision_unknown", "Nothing was decided.", advice="Press one of the buttons.")
    note = fields.get("note")
    try:
        outcomes = await decide_many(
            web.database, visitor.actor, page.club.id, Verdict(verdict), ticked, note=note, mailer=web.mailer
        )
    except Invalid as error:
        return await _list(request, web, visitor, slug, note=note or "", problem=error)
    if all(outcome.problem is None for outcome in outcomes):
        return go_to(page.path("join-requests"))
    return await _list(request, web, visitor, slug, outcomes=outcomes)


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
    fields = await joined_fields(request)
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    wanted, note = known_id(request_id), fields.get("note")
    ticked = fields.get("grant", "").split()
    grants = [one for one in AgentGrant if one in ticked] if "is_agent" in fields else None
    try:
        match fields.get("decision"):
            case Verdict.APPROVE:
                await approve_join_request(
                    web.database,
                    visitor.actor,
                    page.club.id,
                    wanted,
                    note=note,
                    agent_grants=grants,
                    mailer=web.mailer,
                )
            case Verdict.REJECT:
                await reject_join_request(
                    web.database, visitor.actor, page.club.id, wanted, note=note, mailer=web.mailer
                )
            case _:
                raise Invalid("decision_unknown", "Nothing was decided.", advice="Press one of the buttons.")
    except (Invalid, NotAllowed, Conflict) as error:
        return await _request_page(request, web, visitor, slug, request_id, note=note or "", problem=error)
    return go_to(page.path("join-requests"))


@get("/c/{slug:str}/join-requests/{request_id:str}/delete", opt=access(Access.STAFF))
async def ask_delete(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    request_id: FromPath[str],
) -> Response[str]:
    page, found = await _one(web, visitor, slug, request_id)
    place = page.place(SECTION)
    title = "Delete a join request"
    return web.pages.ask(request, "join_request_delete_ask.html", place, page.now, title=title, one=found)


@post("/c/{slug:str}/join-requests/{request_id:str}/delete", opt=access(Access.STAFF))
async def delete_one(
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    request_id: FromPath[str],
) -> Redirect:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    await delete_join_request(web.database, visitor.actor, page.club.id, known_id(request_id))
    return go_to(page.path("join-requests"))


async def who_waits(
    tx: Reader,
    visitor: Visitor,
    page: ClubPage,
    after: Cursor | None = None,
    status: RequestStatus = RequestStatus.PENDING,
) -> dict[str, Any]:
    """What ``door.html`` shows: who waits, or what became of others, and where the next page begins."""
    found = await join_requests_page(tx, visitor.actor, page.club.id, status=status, after=after)
    kept = "" if status is RequestStatus.PENDING else status.value
    return {
        "waiting": found.requests,
        "waiting_next": older(page.path("join-requests"), REQUESTS, found.next, shown=kept),
        "status_shown": status,
        "statuses": STATUSES,
    }


async def _list(
    request: PageRequest,
    web: Web,
    visitor: Visitor,
    slug: str,
    *,
    after: str = "",
    shown: str = "",
    note: str = "",
    outcomes: list[Outcome] | None = None,
    problem: LastcallError | None = None,
) -> Response[str]:
    status = RequestStatus(shown) if shown in set(RequestStatus) else RequestStatus.PENDING
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        waiting = await who_waits(tx, visitor, page, read_cursor(REQUESTS, after or None), status)
    refused = {one.request_id: one.problem for one in outcomes or () if one.problem}
    return web.pages.show(
        request,
        "join_requests.html",
        page.place(SECTION),
        page.now,
        status=problem.status if problem else 200,
        note=note,
        problem=problem,
        refused=refused,
        decided=len(outcomes or ()) - len(refused),
        **waiting,
    )


async def _one(web: Web, visitor: Visitor, slug: str, request_id: str) -> tuple[ClubPage, JoinRequestView]:
    wanted = known_id(request_id)
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        return page, await join_request(tx, visitor.actor, page.club.id, wanted)


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
    page, found = await _one(web, visitor, slug, request_id)
    is_note = problem is not None and problem.field == "note"
    return web.pages.show(
        request,
        "join_request.html",
        page.place(SECTION),
        page.now,
        status=problem.status if problem else 200,
        one=found,
        note=note,
        statuses=STATUSES,
        problem=None if is_note else problem,
        note_problem=problem.sentence if problem and is_note else None,
    )


HANDLERS = (list_requests, decide_ticked, show_request, decide, ask_delete, delete_one)
