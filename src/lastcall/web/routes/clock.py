"""The server's time, for the composers' scripts."""

from __future__ import annotations

from litestar import Response, get
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery

from lastcall.operations.server_clock import server_clock
from lastcall.web.access import Access, Visitor, access
from lastcall.web.club import club_page
from lastcall.web.room import Web


@get("/c/{slug:str}/clock", opt=access(Access.STAFF))
async def read_clock(
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    nonce: FromQuery[str] = "",
) -> Response[dict[str, str]]:
    """``{"nonce", "now"}``: the nonce as it came, the time in UTC. Kept nowhere."""
    async with web.database.read() as tx:
        await club_page(tx, visitor, slug)
        reading = await server_clock(tx, visitor.actor, nonce)
    return Response(
        {"nonce": reading.nonce, "now": reading.now.isoformat()}, headers={"Cache-Control": "no-store"}
    )


HANDLERS = (read_clock,)
