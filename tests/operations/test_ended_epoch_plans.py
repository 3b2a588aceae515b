"""What an ended epoch left is found by the index of what waits, a page at a time, among very many other rows."""

from __future__ import annotations

from datetime import timedelta

import pytest
from operations_world import World
from test_operations_plans import SETTLED, check, explained, filled

from lastcall.operations.owners.epochs import PAGE

pytestmark = pytest.mark.postgres15

DAY = timedelta(days=1)


@pytest.mark.clause("WRK-11")
async def test_a_page_of_an_ended_epoch_reads_only_what_waits_of_it(world: World) -> None:
    """What is claimed at the moment, of all clubs, is looked through as well; it is never much."""
    await filled(world)
    await world.run("delete from operations where state = 'claimed'")
    await world.run("analyze operations")
    ended = (world.club_id, world.connection_id, world.epoch - DAY)
    await world.run("select note_ended_epoch($1, $2, $3, 'connection_changed')", *ended)
    async with explained(world) as (connection, plans):
        for _ in range(SETTLED):
            plans.seen.clear()
            page = await connection.fetchrow("select * from clean_up_epoch($1, $2, $3, $4)", *ended, PAGE)
            assert (page["is_over"], page["has_changed"]) == (False, True)
            check(plans, "operations_runnable_idx", most=PAGE)
    rejected = "select count(*) from operations where state = 'rejected' and epoch = $1"
    assert await world.run(rejected, ended[2]) == SETTLED * PAGE


async def test_an_epoch_that_left_nothing_is_seen_to_by_index(world: World) -> None:
    await filled(world)
    await world.run("delete from operations where state = 'claimed'")
    await world.run("analyze operations")
    async with explained(world) as (connection, plans):
        for _ in range(SETTLED):
            plans.seen.clear()
            noted_at = await connection.fetchval(
                "select note_ended_epoch($1, $2, $3, 'connection_changed')",
                *(world.club_id, world.connection_id, world.epoch - 2 * DAY),
            )
            assert noted_at is None
            check(plans, "operations_runnable_idx")
