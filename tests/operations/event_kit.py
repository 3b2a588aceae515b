"""Events for tests of operations that are linked to them, through the one writer path."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from operations_world import World, assignment

from lastcall.events.queries import EventView, Publication, read_event
from lastcall.events.services.write import EventFields, create_event, edit_event
from lastcall.events.times import DateOnly, EventTime, Timed, TimeTba
from lastcall.operations.schedules import EventRelative, Schedule
from lastcall.operations.services.enqueue import Enqueued, enqueue
from lastcall.people.actor import Actor

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)


async def make_event(
    world: World, when: EventTime | timedelta = DAY, publication: Publication = Publication.PUBLISHED
) -> EventView:
    """An event that starts ``when`` from now, or is timed in another way."""
    if isinstance(when, timedelta):
        when = Timed(await world.clock.now() + when)
    fields = EventFields("Friday", when, "Europe/Berlin")
    return await create_event(world.db, world.owner, world.club_id, fields, publication=publication)


async def retime(world: World, event: EventView, when: EventTime) -> EventView:
    """The event at another time."""
    async with world.db.read() as tx:
        now = await read_event(tx, world.club_id, event.id)
    assert now is not None
    fields = EventFields(now.title, when, now.zone)
    return await edit_event(world.db, world.owner, world.club_id, event.id, fields, now.revision)


async def move(world: World, event: EventView, by: timedelta) -> EventView:
    """The event that much later."""
    assert event.starts_at is not None
    return await retime(world, event, Timed(event.starts_at + by))


def relative(event: EventView, offset: timedelta = -HOUR, reviewed: datetime | None = None) -> EventRelative:
    """Timed by the event, as a person who sees it as it is here would review it."""
    assert event.starts_at is not None
    return EventRelative(event.id, offset, reviewed or event.starts_at + offset)


async def queue(
    world: World,
    schedule: Schedule,
    *payloads: dict[str, Any],
    key: str | None = None,
    actor: Actor | None = None,
) -> Enqueued:
    return await enqueue(
        world.db,
        actor or world.moderator,
        world.club_id,
        key or f"request-{uuid4()}",
        payloads or [assignment()],
        schedule,
    )


async def queue_one(world: World, schedule: Schedule, *payloads: dict[str, Any], **how: Any) -> UUID:
    return (await queue(world, schedule, *payloads, **how)).operation_ids[0]


TBA = TimeTba()
A_DATE = DateOnly(date(2090, 1, 1))
