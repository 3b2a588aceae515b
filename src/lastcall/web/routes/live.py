"""The event streams behind pages that change while somebody looks at them."""

from __future__ import annotations

from collections.abc import Mapping

from litestar import get
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.response import Stream

from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import require
from lastcall.connections.signals import CONNECTION_TOPIC
from lastcall.errors import NotFound
from lastcall.operations.signals import TOPIC as SCHEDULED
from lastcall.people.scopes import Scope
from lastcall.people.sessions import actor_of_session
from lastcall.reads.signals import TOPIC as READS
from lastcall.web.access import Access, Visitor, access
from lastcall.web.club import club_page
from lastcall.web.inbox import TOPIC as INBOX
from lastcall.web.live import Channel
from lastcall.web.pages import PageRequest
from lastcall.web.room import Web

NEEDS: Mapping[str, Permission | None] = {
    SCHEDULED: None,
    READS: None,
    INBOX: None,
    CONNECTION_TOPIC: Permission.MANAGE_CONNECTION,
}
"""What is told of a club, and the permission that the page behind it asks for."""


@get("/c/{slug:str}/live/{topic:str}", opt=access(Access.STAFF))
async def live(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    topic: FromPath[str],
    seen: FromQuery[str] = "",
) -> Stream:
    """It says that something of the topic changed, not what."""
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        if topic not in NEEDS:
            raise NotFound("not_found", "There is no such page.")
        permission = NEEDS[topic]
        if permission is not None:
            await require(tx, visitor.actor, page.club.id, permission, scope=Scope.READ)
    return event_stream(request, web, visitor, (page.club.id, topic), seen=seen)


def event_stream(request: PageRequest, web: Web, visitor: Visitor, *channels: Channel, seen: str) -> Stream:
    """A stream on these channels for as long as the visitor's session lives. A broken one says where it was."""
    session = visitor.session or ""

    async def is_welcome() -> bool:
        return await actor_of_session(web.database, session) is not None

    last = request.headers.get("last-event-id", seen)
    return Stream(
        web.live.stream(channels, last, is_welcome),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


HANDLERS = (live,)
