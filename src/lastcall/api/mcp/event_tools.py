"""Tools on a club's events. They write on the one path that pages and API use (EVT-01)."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from lastcall.api.mcp.tool import Club, PageCursor, PageSize, Tool
from lastcall.api.v1.event_shapes import Event, EventEdit, NewEvent, TimeInput, event_fields, event_shape
from lastcall.api.v1.idempotency import once
from lastcall.api.v1.routes.clock import read_local_time
from lastcall.api.v1.routes.events import Which, cancel_one_event, edit_one_event, list_events
from lastcall.api.v1.shapes import Id, Input, Shape, known
from lastcall.db.database import Database
from lastcall.events.queries import Publication
from lastcall.events.services.write import create_event
from lastcall.people.actor import Actor

EventId = Annotated[Id, Meta(description="The event's id.")]
Zone = Annotated[str, Meta(description="The IANA name of the zone in which its times are shown.")]
Description = Annotated[str, Meta(description="What staff read about it; empty for nothing.")]


class ListEvents(Input, frozen=True):
    """Which events are wanted."""

    club: Club
    which: Which = Which.UPCOMING
    limit: PageSize = 20
    cursor: PageCursor | None = None


class CreateEvent(Input, frozen=True):
    """The new event."""

    club: Club
    title: str
    time: TimeInput
    zone: Zone
    description: Description = ""
    publication: Annotated[Publication, Meta(description="A draft is seen by those who manage events.")] = (
        Publication.DRAFT
    )
    idempotency_key: (
        Annotated[
            str,
            Meta(
                pattern="^[A-Za-z0-9_-]{8,128}$",
                description="Yours to choose: within 24 hours the same key and event are answered with what was made.",
            ),
        ]
        | None
    ) = None


class EditEvent(Input, frozen=True):
    """All that the event is to say."""

    club: Club
    event_id: EventId
    title: str
    time: TimeInput
    zone: Zone
    description: Description
    seen: Annotated[int, Meta(ge=1, le=2**31 - 1, description="The event's revision that was seen.")]


class OneEvent(Input, frozen=True):
    """Which event is meant."""

    club: Club
    event_id: EventId


class LocalTime(Input, frozen=True):
    """A time as somebody says it."""

    local: Annotated[str, Meta(max_length=40, description="Like 2026-10-25T02:30, without a zone.")]
    zone: Annotated[str, Meta(max_length=100, description="An IANA name, like Europe/Berlin.")]
    second: Annotated[bool, Meta(description="Of a time that comes twice on that day, the second.")] = False


async def _create(db: Database, actor: Actor, asked: CreateEvent) -> Shape:
    club_id = known(asked.club)
    data = NewEvent(
        title=asked.title,
        time=asked.time,
        zone=asked.zone,
        description=asked.description,
        publication=asked.publication,
    )

    async def make() -> Event:
        return event_shape(
            await create_event(db, actor, club_id, event_fields(data), publication=data.publication)
        )

    return await once(db, actor, f"create_event {asked.club}", asked.idempotency_key, data, make, Event)


async def _edit(db: Database, actor: Actor, asked: EditEvent) -> Shape:
    data = EventEdit(
        title=asked.title,
        time=asked.time,
        zone=asked.zone,
        description=asked.description,
        seen=asked.seen,
    )
    answer: Shape = await edit_one_event.fn(
        db=db, actor=actor, club=asked.club, event_id=asked.event_id, data=data
    )
    return answer


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        name="local_time",
        words="Which instant a time in a zone is, with a word when the clock skips it or shows it twice that day. All "
        "other tools take instants.",
        asked=LocalTime,
        run=lambda _, __, asked: read_local_time.fn(local=asked.local, zone=asked.zone, second=asked.second),
        reads=True,
    ),
    Tool(
        name="list_events",
        words="The club's events: those that are not over, the next first, or those that are.",
        asked=ListEvents,
        run=lambda db, actor, asked: list_events.fn(
            db=db,
            actor=actor,
            club=asked.club,
            limit=asked.limit,
            cursor=asked.cursor,
            which=asked.which,
        ),
        reads=True,
    ),
    Tool(
        name="create_event",
        words="Add an event to the club, as a draft unless it is to be published at once.",
        asked=CreateEvent,
        run=_create,
    ),
    Tool(
        name="edit_event",
        words="Set all of an event. Operations that are timed by it move with it; when it has no exact start any more, "
        "they are stopped for good.",
        asked=EditEvent,
        run=_edit,
        destroys=True,
    ),
    Tool(
        name="cancel_event",
        words="Say that an event does not take place. Every operation that is linked to it and not sent stops for "
        "good, though the event be reinstated.",
        asked=OneEvent,
        run=lambda db, actor, asked: cancel_one_event.fn(
            db=db, actor=actor, club=asked.club, event_id=asked.event_id
        ),
        destroys=True,
        repeats=True,
    ),
)
