"""What a person was told in a club, and what could not be delivered there or anywhere."""

from __future__ import annotations

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.response import Redirect

from lastcall.clubs.permissions import Permission
from lastcall.db.cursor import read_cursor, write_cursor
from lastcall.decisions.deliveries import dead, notices
from lastcall.web.access import Access, Visitor, access
from lastcall.web.club import club_page
from lastcall.web.fields import known_id
from lastcall.web.looks import CHANNELS
from lastcall.web.pages import PageRequest, form_fields, go_to, joined_fields
from lastcall.web.room import Web

PAGE = 50  # rows


@get("/c/{slug:str}/messages", opt=access(Access.STAFF))
async def messages_page(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    after: FromQuery[str] = "",
) -> Response[str]:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        start = read_cursor(notices.LISTING, after or None)
        told = await notices.notices_of(
            tx, visitor.actor, {page.club.id: page.standing}, after=start, limit=PAGE
        )
        may_mend = page.standing.holds(Permission.MANAGE_CONNECTION)
        undelivered = await dead.dead_of_club(tx, visitor.actor, page.club.id, limit=PAGE) if may_mend else []
    return web.pages.show(
        request,
        "messages.html",
        page.place("staff"),
        page.now,
        told=told.items,
        older=None if told.next is None else write_cursor(notices.LISTING, told.next),
        is_first=not after,
        may_mend=may_mend,
        undelivered=undelivered,
        channels=CHANNELS,
    )


@post("/c/{slug:str}/messages", opt=access(Access.STAFF))
async def dismiss(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
) -> Redirect:
    """Take messages out of one's own sight."""
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    fields = await joined_fields(request)
    ids = [known_id(one) for one in fields.get("message", "").split()]
    await notices.dismiss_notices(web.database, visitor.actor, page.club.id, ids)
    return go_to(page.path("messages"))


@post("/c/{slug:str}/messages/{message_id:str}/retry", opt=access(Access.STAFF))
async def retry(
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    message_id: FromPath[str],
) -> Redirect:
    """Try one again that was given up."""
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    await dead.try_again(web.database, visitor.actor, page.club.id, known_id(message_id))
    return go_to(page.path("messages"))


@post("/operator/messages/retry", opt=access(Access.OPERATOR))
async def retry_anywhere(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor]
) -> Redirect:
    """The same for an operator, who names the club too."""
    fields = await form_fields(request)
    club_id, message_id = known_id(fields.get("club", "")), known_id(fields.get("message", ""))
    await dead.try_again(web.database, visitor.actor, club_id, message_id)
    return go_to("/operator/mail")


HANDLERS = (messages_page, dismiss, retry, retry_anywhere)
