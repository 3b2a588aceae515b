"""The inbox of a club, and that of everything its reader works for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.response import Redirect, Stream

from lastcall.db.cursor import read_cursor, write_cursor
from lastcall.db.transaction import Reader
from lastcall.decisions.inbox.acts import Outcome, act_on
from lastcall.decisions.inbox.item import Act, Shelf
from lastcall.decisions.inbox.queries import LISTING, inbox_counts, inbox_page
from lastcall.decisions.inbox.reach import Reach, reach_everywhere, reach_of
from lastcall.decisions.inbox.source import sources
from lastcall.errors import Invalid
from lastcall.web.access import Access, Visitor, access
from lastcall.web.club import club_page
from lastcall.web.inbox import (
    ASKED,
    DONE,
    SNOOZES,
    TOPIC,
    Listing,
    item_key,
    offered,
    read_act,
    read_listing,
    read_said,
)
from lastcall.web.live import Channel
from lastcall.web.pages import PageRequest, Place, go_to, is_fragment, joined_fields
from lastcall.web.room import Web, database_now
from lastcall.web.routes.live import event_stream

PAGE = 25  # items
EVERYWHERE = "/inbox"


@dataclass(frozen=True)
class Desk:
    """Whose inbox of what: one club's, or all of a reader's."""

    place: Place
    reach: Reach
    now: datetime
    path: str
    stream: str

    @property
    def channels(self) -> list[Channel]:
        return [(club_id, TOPIC) for club_id in self.reach.held]


async def desk_of(tx: Reader, visitor: Visitor, slug: str | None) -> Desk:
    """Raises ``NotFound`` for a club that the visitor does not work for."""
    if slug is None:
        now = await database_now(tx)
        return Desk(Place("inbox"), await reach_everywhere(tx, visitor.actor), now, EVERYWHERE, "/live/inbox")
    page = await club_page(tx, visitor, slug)
    reach = reach_of(visitor.actor, page.club.id, page.standing)
    return Desk(page.place("inbox"), reach, page.now, page.path("inbox"), page.path(f"live/{TOPIC}"))


@get("/inbox", opt=access(Access.SIGNED_IN))
async def inbox_everywhere(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    shelf: FromQuery[str] = "",
    kind: FromQuery[str] = "",
    after: FromQuery[str] = "",
    did: FromQuery[str] = "",
) -> Response[str]:
    listing = read_listing(EVERYWHERE, shelf, kind)
    return await _show(request, web, visitor, None, listing, after=after, did=did)


@post("/inbox", opt=access(Access.SIGNED_IN))
async def act_everywhere(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    shelf: FromQuery[str] = "",
    kind: FromQuery[str] = "",
) -> Response[str] | Redirect:
    return await _act(request, web, visitor, None, read_listing(EVERYWHERE, shelf, kind))


@get("/c/{slug:str}/inbox", opt=access(Access.STAFF))
async def club_inbox(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    shelf: FromQuery[str] = "",
    kind: FromQuery[str] = "",
    after: FromQuery[str] = "",
    did: FromQuery[str] = "",
) -> Response[str]:
    listing = read_listing(f"/c/{slug}/inbox", shelf, kind)
    return await _show(request, web, visitor, slug, listing, after=after, did=did)


@post("/c/{slug:str}/inbox", opt=access(Access.STAFF))
async def act_in_club(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    shelf: FromQuery[str] = "",
    kind: FromQuery[str] = "",
) -> Response[str] | Redirect:
    return await _act(request, web, visitor, slug, read_listing(f"/c/{slug}/inbox", shelf, kind))


@get("/live/inbox", opt=access(Access.SIGNED_IN))
async def live_everywhere(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    seen: FromQuery[str] = "",
) -> Stream:
    """It says that something changed in one of the reader's clubs, not what."""
    async with web.database.read() as tx:
        desk = await desk_of(tx, visitor, None)
    return event_stream(request, web, visitor, *desk.channels, seen=seen)


async def _act(
    request: PageRequest, web: Web, visitor: Visitor, slug: str | None, listing: Listing
) -> Response[str] | Redirect:
    """Do it to each that is ticked. Those to which it could not be done are told one by one, with the reason."""
    fields = await joined_fields(request)
    async with web.database.read() as tx:
        desk = await desk_of(tx, visitor, slug)
    try:
        act, ticked = read_act(fields)
        said = read_said(fields, desk.now, web.mailer)
        outcomes = await act_on(web.database, visitor.actor, act, ticked, said)
    except Invalid as error:
        return await _show(request, web, visitor, slug, listing, problem=error, fields=fields)
    if any(outcome.problem for outcome in outcomes):
        return await _show(request, web, visitor, slug, listing, act=act, outcomes=outcomes, fields=fields)
    return go_to(listing.address(did=f"{len(outcomes)}-{act.value}"))


async def _show(
    request: PageRequest,
    web: Web,
    visitor: Visitor,
    slug: str | None,
    listing: Listing,
    *,
    after: str = "",
    did: str = "",
    problem: Invalid | None = None,
    act: Act | None = None,
    outcomes: Sequence[Outcome] = (),
    fields: Mapping[str, str] | None = None,
) -> Response[str]:
    start, is_part = read_cursor(LISTING, after or None), is_fragment(request)
    async with web.database.read() as tx:
        desk = await desk_of(tx, visitor, slug)
        seen = web.live.mark(*desk.channels)
        wanted = listing.wanted(desk.now, web.pages.zone(request, desk.place))
        page = await inbox_page(tx, desk.reach, wanted, after=start, limit=PAGE)
        counts = await inbox_counts(tx, desk.reach, wanted)
    items = {item_key(item): item for item in page.items}
    more = None if page.next is None else listing.address(after=write_cursor(LISTING, page.next))
    return web.pages.show(
        request,
        "inbox_live.html" if is_part else "inbox.html",
        desk.place,
        desk.now,
        is_part=is_part,
        stream=desk.stream,
        seen=seen,
        listing=listing,
        shelves={shelf: counts.of(shelf) for shelf in Shelf},
        kinds=[(source, counts.of(listing.shelf, source.name)) for source in sources()],
        items=items,
        acts=[(one, ASKED[one]) for one in offered(page.items)],
        asked=ASKED,
        snoozes=SNOOZES,
        is_first=start is None,
        more=more,
        did=_done(did),
        problem=problem,
        act=act,
        outcomes=outcomes,
        note=(fields or {}).get("note", ""),
        badge=counts.of(Shelf.WAITING),
    )


def _done(did: str) -> str:
    """What was done before the page was asked for, in words."""
    number, _, name = did.partition("-")
    if name not in set(Act) or not (number.isascii() and number.isdigit() and 1 <= len(number) <= 3):
        return ""
    return f"{int(number)} {DONE[Act(name)]}."


HANDLERS: tuple[Any, ...] = (inbox_everywhere, act_everywhere, club_inbox, act_in_club, live_everywhere)
