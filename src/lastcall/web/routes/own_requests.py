"""Whoever asked to join a club sees here what became of it, over all clubs, and takes back what still waits."""

from __future__ import annotations

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.response import Redirect

from lastcall.access.deciding import withdraw_join_request
from lastcall.access.request_queries import own_requests
from lastcall.db.cursor import cut, read_cursor
from lastcall.web.access import Access, Visitor, access
from lastcall.web.fields import known_id
from lastcall.web.pages import PageRequest, Place, form_fields, go_to
from lastcall.web.room import Web, database_now

LISTING = "own_requests"
PAGE = 20  # requests


@get("/requests", opt=access(Access.SIGNED_IN))
async def list_own(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    after: FromQuery[str] = "",
) -> Response[str]:
    start = read_cursor(LISTING, after or None)
    async with web.database.read() as tx:
        now = await database_now(tx)
        found = await own_requests(tx, visitor.actor, after=start, limit=PAGE + 1)
    shown, more = cut(found, PAGE, LISTING, lambda one: one.cursor)
    return web.pages.show(request, "own_requests.html", Place("clubs"), now, requests=shown, next=more)


@post("/requests/{request_id:str}/withdraw", opt=access(Access.SIGNED_IN))
async def withdraw(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    request_id: FromPath[str],
) -> Redirect:
    club_id = known_id((await form_fields(request)).get("club", ""))
    await withdraw_join_request(web.database, visitor.actor, club_id, known_id(request_id))
    return go_to("/requests")


HANDLERS = (list_own, withdraw)
