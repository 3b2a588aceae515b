"""What authorize holds before it judges."""

from __future__ import annotations

import asyncio

import pytest
from operations_world import World

from lastcall.testing.locks import wait_until_blocked


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_authorize_locks_in_the_order_of_the_house(world: World, place: int) -> None:
    """Whoever waits for one of them holds those before it and none behind: so no two wait for each other."""
    tables = ["club_gates", "connection_gates", "operations"]
    _, held = await world.claimed()
    async with world.db.pool.acquire() as other:
        transaction = other.transaction()
        await transaction.start()
        await other.execute(f"select from {tables[place]} for update")
        waiting = asyncio.create_task(
            world.steps.authorize(world.worker, held, "assign_role", world.evidence())
        )
        await wait_until_blocked(world.db, "authorize_operation", by=other.get_server_pid())
        free = [
            await world.run(f"select count(*) from (select from {table} for update skip locked) as f")
            for table in tables
        ]
        await transaction.rollback()
    assert free == [0] * (place + 1) + [1] * (2 - place)
    assert (await waiting).is_authorized


async def test_nothing_is_authorized_without_the_locks(world: World) -> None:
    """No gate, no lock: what was judged could change before it is written."""
    operation_id, held = await world.claimed()
    await world.run("delete from connection_gates")
    verdict = await world.steps.authorize(world.worker, held, "assign_role", world.evidence())
    assert (verdict.code, verdict.state) == ("claim_unavailable", None)
    assert await world.state(operation_id) == "claimed"
