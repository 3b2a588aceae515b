"""Events of the club, and operations that follow them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from operations_world import World, assignment

import lastcall.operations.listeners
from lastcall.deadlines.owner import Done, More, Owner, PassResult, Stop
from lastcall.events.queries import EventView, Publication, read_event
from lastcall.events.services.write import EventFields, create_event, edit_event
from lastcall.events.times import EventTime, Timed
from lastcall.operations.owners import operation_owners

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)

_FOLLOW = """
update operations o
   set event_id = e.id, event_cancel_generation = e.cancel_generation, event_tba_generation = e.tba_generation,
       offset_ms = $4, schedule_kind = case when $4::bigint is null then o.schedule_kind else 'event_relative' end,
       due_at = coalesce(event_due(e.starts_at, $4), o.due_at),
       ready_at = coalesce(event_due(e.starts_at, $4), o.ready_at)
  from events e
 where o.club_id = $1 and o.id = any ($2::uuid[]) and e.club_id = o.club_id and e.id = $3
"""


async def an_event(world: World, starts_at: datetime) -> UUID:
    """A published event that starts then. Operations hear of its changes."""
    lastcall.operations.listeners.register()
    fields = EventFields("Evening", Timed(starts_at), "Europe/Berlin")
    made = await create_event(world.db, world.owner, world.club_id, fields, publication=Publication.PUBLISHED)
    return made.id


async def seen(world: World, event_id: UUID) -> EventView:
    async with world.db.read() as tx:
        found = await read_event(tx, world.club_id, event_id)
    assert found is not None
    return found


async def retime(world: World, event_id: UUID, time: EventTime) -> None:
    """Give the event another time, as a person does."""
    event = await seen(world, event_id)
    fields = EventFields(event.title, time, event.zone, event.description)
    await edit_event(world.db, world.owner, world.club_id, event_id, fields, event.revision)


async def follow(
    world: World, operation_ids: Sequence[UUID], event_id: UUID, offset: timedelta | None = None
) -> None:
    """Tie operations to the event as it is now; with an offset they are due by its start."""
    offset_ms = None if offset is None else round(offset / timedelta(milliseconds=1))
    await world.run(_FOLLOW, world.club_id, list(operation_ids), event_id, offset_ms)


async def following(
    world: World,
    event_id: UUID,
    count: int = 1,
    *,
    first: int = 1,
    offset: timedelta | None = None,
    **how: Any,
) -> tuple[UUID, ...]:
    """So many pending operations that follow the event."""
    ids: list[UUID] = []
    for start in range(first, first + count, 100):
        numbers = range(start, min(start + 100, first + count))
        ids += (await world.enqueue(*map(assignment, numbers), **how)).operation_ids
    await follow(world, ids, event_id, offset)
    return tuple(ids)


async def depend(world: World, operation_id: UUID, creation_id: UUID) -> None:
    """Make one operation depend on another, which becomes the creation of an instance, as its event is now."""
    await world.run("update operations set kind = 'create_instance' where id = $1", creation_id)
    await world.run(
        """
        update operations d
           set depends_on = c.id, dependency_revision = c.revision, dependency_event_id = c.event_id,
               kind = 'invite_to_created_instance',
               payload = d.payload || jsonb_build_object('creationRevision', c.revision),
               event_id = coalesce(d.event_id, c.event_id),
               event_cancel_generation = coalesce(d.event_cancel_generation, c.event_cancel_generation),
               event_tba_generation = coalesce(d.event_tba_generation, c.event_tba_generation)
          from operations c
         where d.id = $1 and c.id = $2
        """,
        operation_id,
        creation_id,
    )


def owner_named(world: World, name: str) -> Owner:
    return next(owner for owner in operation_owners(world.db, world.mailer) if owner.name == name)


def fanout(world: World) -> Owner:
    return owner_named(world, "operation_fanout")


async def fan_out(world: World, owner: Owner | None = None) -> list[PassResult]:
    """Passes until nothing is left to go through."""
    owner = owner or fanout(world)
    results: list[PassResult] = []
    while not results or isinstance(results[-1], More):
        results.append(await owner.run_pass(Stop()))
    assert results[-1] == Done(getattr(results[-1], "done", 0)), results
    return results


async def clean_up(world: World) -> list[PassResult]:
    """What is unsent of epochs that ended is rejected, to the last of it."""
    return await fan_out(world, owner_named(world, "epoch_cleanup"))


async def states(world: World, operation_ids: Sequence[UUID]) -> list[tuple[str, str | None]]:
    rows = await world.db.pool.fetch(
        "select o.state, o.code from unnest($1::uuid[]) with ordinality as n (id, n) join operations o using (id)"
        " order by n.n",
        list(operation_ids),
    )
    return [(row["state"], row["code"]) for row in rows]
