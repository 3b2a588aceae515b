"""Disconnecting, connecting anew, and the pages in which an ended epoch is cleaned up."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from operations_world import GROUP, World, assignment

from lastcall.connections.connect import connect_club, disconnect_club, finish_disconnect
from lastcall.connections.states import Feature
from lastcall.db.database import Database
from lastcall.operations.owners.epochs import EndedEpochs
from lastcall.testing.connecting import activate

CHANGED = ("rejected", "connection_changed")
_COUNT = "select count(*) from operations where state = $1 and code is not distinct from $2"


async def disconnect(world: World) -> None:
    await disconnect_club(world.db, None, world.club_id, world.connection_id)


async def reconnect(world: World) -> UUID:
    """The account has left the group, and is in it again."""
    await finish_disconnect(world.db, None, world.club_id, world.connection_id)
    connection_id = await connect_club(
        world.db,
        None,
        world.club_id,
        group_id=GROUP,
        group_name="Group",
        account_id=world.account_id,
        features=[Feature.MEMBERSHIP_MANAGEMENT],
    )
    await activate(world.db, world.club_id, connection_id)
    return connection_id


async def batch(world: World, count: int, **how: Any) -> list[UUID]:
    made = [
        await world.enqueue(*[assignment(n) for n in range(start, min(start + 100, count))], **how)
        for start in range(0, count, 100)
    ]
    return [operation_id for one in made for operation_id in one.operation_ids]


async def rejected(world: World) -> int:
    count: int = await world.run(_COUNT, *CHANGED)
    return count


async def one_page(db: Database) -> bool:
    """Whether there was one to do."""
    source = EndedEpochs(db)
    candidate = await source.first(None)
    if candidate is not None:
        await source.step(candidate)
    return candidate is not None
