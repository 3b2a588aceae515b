"""Events of a club: lists, one, and everything that changes one."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from litestar import delete, get, post, put
from litestar.di import NamedDependency
from litestar.params import JSONBody, QueryParameter

from lastcall.api.v1.answers import answers
from lastcall.api.v1.event_shapes import (
    Event,
    EventEdit,
    EventPage,
    NewEvent,
    NewWorld,
    TimedEvents,
    event_fields,
    event_shape,
    timed_shape,
)
from lastcall.api.v1.idempotency import Key, called, once
from lastcall.api.v1.paging import CURSOR, After, Limit
from lastcall.api.v1.requests import ApiRequest
from lastcall.api.v1.shapes import PathId, known
from lastcall.clubs.policy import require_staff
from lastcall.db.cursor import read_cursor
from lastcall.db.database import Database
from lastcall.events import queries
from lastcall.events.services import write
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope

TAGS = ["Events"]


class Which(StrEnum):
    """The two lists: what is not over, and what is."""

    UPCOMING = "upcoming"
    PAST = "past"


@get("/clubs/{club:str}/events", tags=TAGS, responses=answers(404))
async def list_events(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    limit: Limit = 50,
    cursor: After = None,
    which: Annotated[
        Which, QueryParameter(description="Those that are not over, the next first, or those that are.")
    ] = Which.UPCOMING,
) -> EventPage:
    """Events by time. Drafts exist for those with `manage_events` only. A page has at most 50."""
    read, listing = (
        (queries.upcoming_events, queries.UPCOMING)
        if which is Which.UPCOMING
        else (queries.past_events, queries.PAST)
    )
    club_id, after = known(club), read_cursor(listing, cursor, field=CURSOR)
    async with db.read() as tx:
        standing = await require_staff(tx, actor, club_id, scope=Scope.READ)
        page = await read(tx, standing, club_id, after, limit)
    return EventPage(items=[event_shape(one) for one in page.events], next=page.next)


@get("/clubs/{club:str}/events/timed", tags=TAGS, responses=answers(404))
async def list_timed_events(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    limit: Limit = 50,
    cursor: After = None,
    search: Annotated[str, QueryParameter(max_length=100, description="Found anywhere in the title.")] = "",
) -> TimedEvents:
    """Events that an action can be timed by: with an exact start, neither cancelled nor over."""
    club_id, after = known(club), read_cursor(queries.PICKER, cursor, field=CURSOR)
    async with db.read() as tx:
        standing = await require_staff(tx, actor, club_id, scope=Scope.READ)
        found, behind = await queries.timed_picker(tx, standing, club_id, after, search, limit)
    return TimedEvents(items=[timed_shape(one) for one in found], next=behind)


@get("/clubs/{club:str}/events/{event_id:str}", tags=TAGS, responses=answers(404))
async def show_event(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, event_id: PathId
) -> Event:
    """One event as it stands now."""
    club_id = known(club)
    async with db.read() as tx:
        standing = await require_staff(tx, actor, club_id, scope=Scope.READ)
        return event_shape(await queries.event(tx, standing, club_id, known(event_id)))


@post("/clubs/{club:str}/events", tags=TAGS, responses=answers(404, 409, body=True))
async def create_one_event(
    request: ApiRequest,
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    data: JSONBody[NewEvent],
    key: Key = None,
) -> Event:
    """Add an event. Like all that changes events it needs `manage_events`."""
    club_id = known(club)

    async def make() -> Event:
        return event_shape(
            await write.create_event(db, actor, club_id, event_fields(data), publication=data.publication)
        )

    return await once(db, actor, called(request), key, data, make, Event)


@put("/clubs/{club:str}/events/{event_id:str}", tags=TAGS, responses=answers(404, 409, body=True))
async def edit_one_event(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    event_id: PathId,
    data: JSONBody[EventEdit],
) -> Event:
    """Set all of an event. What is timed by it moves with it; without an exact start that is stopped for good."""
    return event_shape(
        await write.edit_event(db, actor, known(club), known(event_id), event_fields(data), data.seen)
    )


@delete("/clubs/{club:str}/events/{event_id:str}", tags=TAGS, responses=answers(404))
async def remove_one_event(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, event_id: PathId
) -> None:
    """Take an event away for good, and stop what is linked to it and not sent."""
    await write.remove_event(db, actor, known(club), known(event_id))


@post("/clubs/{club:str}/events/{event_id:str}/cancel", status_code=200, tags=TAGS, responses=answers(404))
async def cancel_one_event(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, event_id: PathId
) -> Event:
    """Say that the event does not take place. What is linked to it and not sent stops for good."""
    return event_shape(await write.cancel_event(db, actor, known(club), known(event_id)))


@post("/clubs/{club:str}/events/{event_id:str}/reinstate", status_code=200, tags=TAGS, responses=answers(404))
async def reinstate_one_event(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, event_id: PathId
) -> Event:
    """Say that a cancelled event takes place after all. It revives nothing that was stopped."""
    return event_shape(await write.reinstate_event(db, actor, known(club), known(event_id)))


@post("/clubs/{club:str}/events/{event_id:str}/publish", status_code=200, tags=TAGS, responses=answers(404))
async def publish_one_event(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, event_id: PathId
) -> Event:
    """Show a draft to all staff."""
    return event_shape(await write.publish_event(db, actor, known(club), known(event_id)))


@post("/clubs/{club:str}/events/{event_id:str}/unpublish", status_code=200, tags=TAGS, responses=answers(404))
async def unpublish_one_event(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, event_id: PathId
) -> Event:
    """Make a draft of an event again. What is linked to it goes on."""
    return event_shape(await write.unpublish_event(db, actor, known(club), known(event_id)))


@post(
    "/clubs/{club:str}/events/{event_id:str}/worlds",
    status_code=200,
    tags=TAGS,
    responses=answers(404, 409, body=True),
)
async def link_event_world(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    event_id: PathId,
    data: JSONBody[NewWorld],
) -> Event:
    """Say in which world the event is."""
    return event_shape(
        await write.link_world(
            db, actor, known(club), known(event_id), data.world_id, data.name, data.confirmation
        )
    )


@post(
    "/clubs/{club:str}/events/{event_id:str}/worlds/{link_id:str}/confirm",
    status_code=200,
    tags=TAGS,
    responses=answers(404),
)
async def confirm_event_world(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    event_id: PathId,
    link_id: PathId,
) -> Event:
    """Confirm a suggested world."""
    return event_shape(await write.confirm_world(db, actor, known(club), known(event_id), known(link_id)))


@delete(
    "/clubs/{club:str}/events/{event_id:str}/worlds/{link_id:str}",
    status_code=200,
    tags=TAGS,
    responses=answers(404),
)
async def unlink_event_world(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    event_id: PathId,
    link_id: PathId,
) -> Event:
    """Take a world from the event."""
    return event_shape(await write.unlink_world(db, actor, known(club), known(event_id), known(link_id)))


HANDLERS = (
    list_events,
    list_timed_events,
    show_event,
    create_one_event,
    edit_one_event,
    remove_one_event,
    cancel_one_event,
    reinstate_one_event,
    publish_one_event,
    unpublish_one_event,
    link_event_world,
    confirm_event_world,
    unlink_event_world,
)
