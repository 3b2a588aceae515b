"""Events: the list, the editor, and what a change does to the work that is scheduled by it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.response import Redirect

from lastcall.clubs.permissions import Permission
from lastcall.connections.queries import connection_card
from lastcall.db.cursor import read_cursor
from lastcall.db.database import Database
from lastcall.db.transaction import Reader
from lastcall.errors import Conflict, Invalid, LastcallError, NotFound
from lastcall.events.queries import (
    PAST,
    UPCOMING,
    EventStatus,
    EventView,
    Publication,
    event,
    may_see_drafts,
    past_events,
    upcoming_events,
)
from lastcall.events.services.write import (
    cancel_event,
    confirm_world,
    link_world,
    publish_event,
    reinstate_event,
    remove_event,
    unlink_world,
    unpublish_event,
)
from lastcall.operations.queries import PAGE_MOST, Filter, upcoming
from lastcall.operations.services.asked import permission_missing
from lastcall.people.actor import Actor
from lastcall.web.access import Access, Visitor, access
from lastcall.web.club import ClubPage, club_page
from lastcall.web.events import (
    Touched,
    event_days,
    event_look,
    hour_words,
    stopped_by,
    time_words,
)
from lastcall.web.fields import known_id
from lastcall.web.pages import PageRequest, form_fields, go_to
from lastcall.web.room import Web
from lastcall.web.scheduled import Entry, role_names, single
from lastcall.web.times import Zoned

SECTION = "events"


@dataclass(frozen=True)
class Act:
    """One thing that is done to an event after a question. ``stops``: it takes the unsent work with it."""

    title: str
    about: str
    button: str
    do: Callable[[Database, Actor, UUID, UUID], Awaitable[object]]
    stops: bool = False


ACTS = {
    "publish": Act("Publish", "All staff see it then.", "Publish it", publish_event),
    "unpublish": Act(
        "Make it a draft again",
        "Only those who manage events see it then. What is scheduled with it goes on.",
        "Make it a draft",
        unpublish_event,
    ),
    "cancel": Act(
        "Cancel the event",
        "It stays in the list as cancelled. What is scheduled with it and not sent stops for good: reinstating the"
        " event does not bring it back.",
        "Cancel the event",
        cancel_event,
        stops=True,
    ),
    "reinstate": Act(
        "Reinstate the event",
        "It takes place after all. What its cancelling stopped stays stopped; queue that anew.",
        "Reinstate it",
        reinstate_event,
    ),
    "remove": Act(
        "Remove the event",
        "It is gone for everybody, and there is no way back. What is scheduled with it and not sent stops.",
        "Remove it",
        remove_event,
        stops=True,
    ),
}


def acts_of(found: EventView) -> list[str]:
    """What can be done to it as it is, in the order of pages."""
    acts = ["publish" if found.publication is Publication.DRAFT else "unpublish"]
    acts.append("reinstate" if found.status is EventStatus.CANCELLED else "cancel")
    return [*acts, "remove"]


def require_managing(page: ClubPage) -> None:
    """Raises ``NotAllowed`` for whoever may not write events."""
    if not page.standing.holds(Permission.MANAGE_EVENTS):
        raise permission_missing(Permission.MANAGE_EVENTS)


def zoned_of(request: PageRequest, web: Web, page: ClubPage) -> Zoned:
    return Zoned(web.pages.zone(request, page.place(SECTION)), page.now)


@get("/c/{slug:str}/events", opt=access(Access.STAFF))
async def events_page(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    after: FromQuery[str] = "",
    shown: FromQuery[str] = "",
) -> Response[str]:
    """What is to come, the next first, all of it or the drafts; or what is over, the last first."""
    is_past, is_drafts = shown == "past", shown == "drafts"
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        reader = (tx, page.standing, page.club.id)
        start = read_cursor(PAST if is_past else UPCOMING, after or None)
        if is_past:
            found = await past_events(*reader, start)
        else:
            only = Publication.DRAFT if is_drafts else None
            found = await upcoming_events(*reader, start, publication=only)
    zoned = zoned_of(request, web, page)
    return web.pages.show(
        request,
        "events.html",
        page.place(SECTION),
        page.now,
        days=event_days(found.events, zoned),
        older=found.next,
        is_first=not after,
        is_past=is_past,
        is_drafts=is_drafts,
        look=event_look,
        words=lambda one: time_words(one.time, zoned, one.zone),
        hour=hour_words,
        may_manage=may_see_drafts(page.standing),
    )


@get("/c/{slug:str}/events/{event_id:str}", opt=access(Access.STAFF))
async def event_page(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    event_id: FromPath[str],
) -> Response[str]:
    async with web.database.read() as tx:
        page, found = await look_up(tx, visitor, slug, event_id)
    return await _show_event(request, web, visitor, page, found)


@get("/c/{slug:str}/events/{event_id:str}/{act:str}", opt=access(Access.STAFF))
async def ask_act(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    event_id: FromPath[str],
    act: FromPath[str],
) -> Response[str]:
    """The question before it, with the scheduled work that it touches."""
    chosen = _act(act)
    async with web.database.read() as tx:
        page, found = await look_up(tx, visitor, slug, event_id)
        require_managing(page)
        rows = await upcoming(
            tx, page.standing, visitor.actor, page.club.id, Filter(event_id=found.id), limit=PAGE_MOST
        )
    touched = await entries_of(web, page, stopped_by(rows)) if chosen.stops else []
    return web.pages.show(
        request,
        "event_ask.html",
        page.place(SECTION),
        page.now,
        event=found,
        act=chosen,
        act_name=act,
        touched=touched,
        is_cut=len(rows) == PAGE_MOST,
        words=time_words(found.time, zoned_of(request, web, page), found.zone),
    )


@post("/c/{slug:str}/events/{event_id:str}/{act:str}", opt=access(Access.STAFF))
async def do_act(
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    event_id: FromPath[str],
    act: FromPath[str],
) -> Redirect:
    chosen = _act(act)
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    await chosen.do(web.database, visitor.actor, page.club.id, known_id(event_id))
    return go_to(page.path("events" if act == "remove" else f"events/{event_id}"))


@post("/c/{slug:str}/events/{event_id:str}/worlds", opt=access(Access.STAFF))
async def link(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    event_id: FromPath[str],
) -> Response[str] | Redirect:
    """Say in which world it is."""
    given = await form_fields(request)
    async with web.database.read() as tx:
        page, found = await look_up(tx, visitor, slug, event_id)
    require_managing(page)
    try:
        await link_world(
            web.database,
            visitor.actor,
            page.club.id,
            found.id,
            given.get("world_id", ""),
            given.get("name", ""),
        )
    except (Invalid, Conflict) as error:
        return await _show_event(request, web, visitor, page, found, given=given, problem=error)
    return go_to(page.path(f"events/{event_id}"))


@post("/c/{slug:str}/events/{event_id:str}/worlds/{link_id:str}", opt=access(Access.STAFF))
async def change_link(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    event_id: FromPath[str],
    link_id: FromPath[str],
) -> Redirect:
    """Confirm a suggested world, or take one from the event."""
    step = (await form_fields(request)).get("step")
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    change = unlink_world if step == "unlink" else confirm_world
    await change(web.database, visitor.actor, page.club.id, known_id(event_id), known_id(link_id))
    return go_to(page.path(f"events/{event_id}"))


def _act(name: str) -> Act:
    if name not in ACTS:
        raise NotFound("not_found", "There is no such page.")
    return ACTS[name]


async def look_up(tx: Reader, visitor: Visitor, slug: str, event_id: str) -> tuple[ClubPage, EventView]:
    page = await club_page(tx, visitor, slug)
    return page, await event(tx, page.standing, page.club.id, known_id(event_id))


async def entries_of(web: Web, page: ClubPage, touched: list[Touched]) -> list[tuple[Entry, Touched]]:
    async with web.database.read() as tx:
        names = role_names(await connection_card(tx, page.club.id))
    return [(single(one.row, names, time=one.row.due_at), one) for one in touched]


async def _show_event(
    request: PageRequest,
    web: Web,
    visitor: Visitor,
    page: ClubPage,
    found: EventView,
    *,
    given: Mapping[str, str] | None = None,
    problem: LastcallError | None = None,
) -> Response[str]:
    async with web.database.read() as tx:
        reader = (page.standing, visitor.actor, page.club.id)
        rows = await upcoming(tx, *reader, Filter(event_id=found.id), limit=PAGE_MOST)
        names = role_names(await connection_card(tx, page.club.id))
    zoned = zoned_of(request, web, page)
    return web.pages.show(
        request,
        "event.html",
        page.place(SECTION),
        page.now,
        status=problem.status if problem else 200,
        event=found,
        look=event_look(found),
        words=time_words(found.time, zoned, found.zone),
        entries=[single(row, names, time=row.due_at) for row in rows],
        acts=[(name, ACTS[name]) for name in acts_of(found)],
        may_manage=may_see_drafts(page.standing),
        given=given or {"world_id": "", "name": ""},
        problem=problem,
    )


HANDLERS = (events_page, event_page, ask_act, do_act, link, change_link)
