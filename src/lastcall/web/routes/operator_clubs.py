"""Operator: the clubs of this server, and a new one."""

from __future__ import annotations

from urllib.parse import urlencode

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromQuery
from litestar.response import Redirect

from lastcall.clubs.queries import clubs_page
from lastcall.clubs.service import create_club
from lastcall.db.cursor import read_cursor
from lastcall.errors import Conflict, Invalid, LastcallError, NotFound
from lastcall.web.access import Access, Visitor, access
from lastcall.web.pages import PageRequest, Place, form_fields, go_to
from lastcall.web.paging import older
from lastcall.web.room import Web, database_now

PLACE = Place("operator")
LISTING = "clubs"
EMPTY = {"name": "", "slug": "", "zone": "UTC", "owner_email": ""}


@get("/operator/clubs", opt=access(Access.OPERATOR))
async def list_clubs(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    search: FromQuery[str] = "",
    after: FromQuery[str] = "",
) -> Response[str]:
    return await _show(request, web, visitor, search=search, after=after)


@post("/operator/clubs", opt=access(Access.OPERATOR))
async def add_one(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor]
) -> Response[str] | Redirect:
    fields = EMPTY | await form_fields(request)
    try:
        await create_club(
            web.database,
            visitor.actor,
            fields["name"],
            fields["slug"].strip(),
            fields["zone"].strip(),
            fields["owner_email"],
        )
    except (Invalid, Conflict, NotFound) as error:
        return await _show(request, web, visitor, fields=fields, problem=error)
    return go_to("/operator/clubs?" + urlencode({"search": fields["slug"].strip()}))


async def _show(
    request: PageRequest,
    web: Web,
    visitor: Visitor,
    *,
    search: str = "",
    after: str = "",
    fields: dict[str, str] | None = None,
    problem: LastcallError | None = None,
) -> Response[str]:
    async with web.database.read() as tx:
        now = await database_now(tx)
        found = await clubs_page(tx, visitor.actor, search=search, after=read_cursor(LISTING, after or None))
    return web.pages.show(
        request,
        "operator_clubs.html",
        PLACE,
        now,
        status=problem.status if problem else 200,
        clubs=found.clubs,
        older=older("/operator/clubs", LISTING, found.next, search=search),
        search=search,
        fields=fields or EMPTY,
        problem=problem,
    )


HANDLERS = (list_clubs, add_one)
