"""Told at once: a read that somebody waits for is there."""

from __future__ import annotations

from litestar import get
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.response import Stream

from lastcall.reads.signals import TOPIC
from lastcall.web.access import Access, Visitor, access
from lastcall.web.club import club_page
from lastcall.web.pages import PageRequest
from lastcall.web.room import Web
from lastcall.web.routes.scheduled import event_stream


@get("/c/{slug:str}/live/reads", opt=access(Access.STAFF))
async def live_reads(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    seen: FromQuery[str] = "",
) -> Stream:
    """The event stream behind whatever waits for a read. It says that some read came, not which."""
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    return event_stream(request, web, visitor, (page.club.id, TOPIC), seen)


HANDLERS = (live_reads,)
