"""What follows an event or a creation is found by its own index, a page at a time, among very many other rows."""

from __future__ import annotations

from datetime import timedelta

import pytest
from dependents_kit import CREATION, Evening, invitation
from events_world import HOUR, an_event, depend, following
from operations_world import World, assignment
from test_operations_plans import SETTLED, check, explained, filled

from lastcall.operations.schedules import Immediate

pytestmark = pytest.mark.postgres15

MOVE = "update events set starts_at = starts_at + interval '1 minute' where id = $1"
PAGE_ROWS = 100
_JUDGED = "select calls from pg_stat_xact_user_functions where funcname = 'dependency_verdict'"


@pytest.mark.clause("EVT-07")
async def test_a_page_of_a_fan_out_walks_the_index_of_what_follows_events(world: World) -> None:
    event_id = await an_event(world, await world.clock.now() + HOUR)
    await filled(world)
    await following(world, event_id, 3 * PAGE_ROWS, first=1000, offset=timedelta(0))
    await world.run("analyze operations")
    async with explained(world) as (connection, plans):
        for _ in range(SETTLED):
            await connection.execute(MOVE, event_id)
            assert await connection.fetchval("select note_event_fanout($1, $2)", world.club_id, event_id)
            for is_over in (False, False, False, True):
                plans.seen.clear()
                page = await connection.fetchrow(
                    "select * from fan_out_event($1, $2, $3)", world.club_id, event_id, PAGE_ROWS
                )
                assert page["is_over"] is is_over
                check(plans, "operations_event_idx", most=PAGE_ROWS)
    assert await world.run("select count(distinct due_at) from operations where event_id = $1", event_id) == 1


async def test_the_dependents_of_a_creation_are_found_by_what_they_depend_on(world: World) -> None:
    await filled(world)
    creation_id = await world.one(assignment(2))
    dependent_id = await world.one(assignment(3))
    await depend(world, dependent_id, creation_id)
    await world.run(
        "update operations set state = 'missed', code = 'late_window_elapsed', completed_at = lastcall_now()"
        " where id = $1",
        creation_id,
    )
    await world.run("analyze operations")
    async with explained(world) as (connection, plans):
        for _ in range(SETTLED):
            plans.seen.clear()
            await connection.execute("delete from operation_fanouts")
            await connection.execute(
                "select operation_ended($1, $2, lastcall_now())", world.club_id, [creation_id, dependent_id]
            )
            assert await connection.fetchval("select subject_id from operation_fanouts") == creation_id
            check(plans, "operations_dependents_idx")


async def test_a_page_of_a_creations_fan_out_walks_what_depends_on_it(evening: Evening) -> None:
    world = evening.world
    creation = await evening.one(CREATION)
    for batch in range(3):
        first = 1 + batch * PAGE_ROWS
        await evening.queue(*(invitation(creation, number) for number in range(first, first + PAGE_ROWS)))
    await evening.create(creation)
    await filled(world)
    async with explained(world) as (connection, plans):
        for _ in range(SETTLED):
            await connection.execute("update operations set ready_at = null where depends_on = $1", creation)
            await connection.execute("select note_dependents($1, $2, now())", world.club_id, [creation])
            for is_over in (False, False, False, True):
                plans.seen.clear()
                page = await connection.fetchrow(
                    "select * from fan_out_creation($1, $2, $3)", world.club_id, creation, PAGE_ROWS
                )
                assert page["is_over"] is is_over
                check(plans, "operations_dependents_idx", most=PAGE_ROWS)
    assert await world.run("select count(ready_at) from operations where depends_on = $1", creation) == 300


@pytest.mark.parametrize("subject", ["event", "creation"])
async def test_a_page_judges_its_own_rows_only_though_nobody_knows_how_many_there_are(
    evening: Evening, subject: str
) -> None:
    world = evening.world
    event_id, _ = await evening.event()
    few, many = [await evening.one(CREATION, Immediate(event_id)) for _ in range(2)]
    await evening.queue(*(invitation(few, number) for number in range(1, 4)))
    await evening.queue(*(invitation(many, number) for number in range(1, 100)))
    await world.run("update operations set ready_at = due_at where depends_on = $1", few)
    await world.run("select note_dependents($1, $2, now())", world.club_id, [few])
    await world.run("select note_event_fanout($1, $2)", world.club_id, event_id)
    async with world.db.transaction() as tx:
        await tx.raw.execute("set local track_functions = 'all'")
        page = await tx.raw.fetchrow(
            f"select * from fan_out_{subject}($1, $2, 10)",
            world.club_id,
            {"event": event_id, "creation": few}[subject],
        )
        assert page["has_changed"]
        assert await tx.raw.fetchval(_JUDGED) <= 2 * 10
