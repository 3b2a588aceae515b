"""The club switcher: the first page after sign-in."""

from __future__ import annotations

from litestar import Response, get
from litestar.di import NamedDependency

from lastcall.clubs.queries import clubs_of
from lastcall.web.access import Access, Visitor, access
from lastcall.web.pages import PageRequest, Place
from lastcall.web.room import Web, database_now


@get("/", opt=access(Access.SIGNED_IN))
async def clubs(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor]
) -> Response[str]:
    async with web.database.read() as tx:
        now = await database_now(tx)
        found = await clubs_of(tx, visitor.actor)
    return web.pages.show(request, "clubs.html", Place("clubs"), now, clubs=found)


HANDLERS = (clubs,)
