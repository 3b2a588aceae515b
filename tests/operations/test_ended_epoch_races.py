"""Several at one ended epoch, crashes, and what others do while it is cleaned up (WRK-11)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from epoch_kit import CHANGED, batch, disconnect, one_page, reconnect, rejected
from events_world import clean_up, owner_named, states
from operations_world import World, assignment
from test_operations_waits import another

from lastcall.db.database import Database
from lastcall.deadlines.owner import Done, Failed, Stop
from lastcall.operations import listeners
from lastcall.operations.owners import operation_owners
from lastcall.operations.services import basis
from lastcall.testing.locks import wait_until_blocked
from lastcall.testing.routines import replace_routine
from lastcall.testing.waiting import eventually

listeners.register()


@pytest.mark.clause("WRK-11")
async def test_two_processes_at_one_epoch_reject_each_row_once(world: World) -> None:
    await batch(world, 60)
    await disconnect(world)
    step = "select has_changed from clean_up_epoch($1, $2, $3, 50)"
    note = (world.club_id, world.connection_id, world.epoch)
    async with another(world) as other:
        assert await other.fetchval(step, *note)
        second = asyncio.ensure_future(world.run(step, *note))
        await wait_until_blocked(world.db, "clean_up_epoch", by=other.get_server_pid())
    assert not await second, "the other one had rejected that page"
    assert await rejected(world) == 50
    results = await asyncio.gather(clean_up(world), clean_up(world))
    assert results
    assert await rejected(world) == 60
    assert await world.run("select count(*) from operation_notices") == 60


@pytest.mark.clause("WRK-11")
async def test_a_process_that_dies_between_pages_or_in_one_leaves_the_rest_to_the_next(world: World) -> None:
    await batch(world, 120)
    await disconnect(world)
    assert await one_page(world.db)
    async with dying(world) as other:
        await other.fetchval(
            "select clean_up_epoch($1, $2, $3, 50)", world.club_id, world.connection_id, world.epoch
        )
    assert await rejected(world) == 50, "a page that was not committed is none"
    next_process = await Database.open(world.db.url)
    try:
        owner = next(
            one for one in operation_owners(next_process, world.mailer) if one.name == "epoch_cleanup"
        )
        assert (await owner.next_deadline()).deadline is not None
        assert await owner.run_pass(Stop()) == Done(2)
    finally:
        await next_process.close()
    assert await rejected(world) == 120


@asynccontextmanager
async def dying(world: World) -> AsyncIterator[Any]:
    """A session that ends without a word in the middle of its transaction."""
    other = await world.db.connect()
    await other.execute("begin")
    pid = other.get_server_pid()
    yield other
    await world.run("select pg_terminate_backend($1)", pid)
    other.terminate()

    async def is_gone() -> bool:
        return bool(await world.run("select not exists (select from pg_stat_activity where pid = $1)", pid))

    await eventually(is_gone)


async def cancelled_meanwhile(world: World) -> str:
    """What becomes of an action that somebody cancels while the clean-up waits for its row."""
    operation_id = await world.one()
    await disconnect(world)
    async with another(world) as other:
        await other.execute(
            "update operations set state = 'cancelled', code = 'cancelled_by_staff', completed_at = lastcall_now()"
            " where id = $1",
            operation_id,
        )
        page = asyncio.ensure_future(one_page(world.db))
        await wait_until_blocked(world.db, "clean_up_epoch", by=other.get_server_pid())
    await page
    return await world.state(operation_id)


async def test_what_is_cancelled_while_the_clean_up_waits_for_it_stays_cancelled(world: World) -> None:
    assert await cancelled_meanwhile(world) == "cancelled"
    assert await world.run("select count(*) from ended_epochs") == 0


async def test_twin_a_clean_up_that_does_not_look_again_overwrites_an_end(world: World) -> None:
    await replace_routine(
        world.db,
        "clean_up_epoch",
        "and o.state in ('pending', 'claimed') and o.submitted_at is null",
        "and o.submitted_at is null",
    )
    assert await cancelled_meanwhile(world) == "rejected"


async def test_a_claim_that_was_under_way_at_the_disconnect_is_cleaned_up_too(world: World) -> None:
    """It waits for nobody's gate, so it may commit after the epoch has ended."""
    operation_id = await world.one()
    async with another(world) as other:
        row = await other.fetchrow(
            "select * from claim_operation($1, 1, $2, $3, $4, $5, $6, 1, false)",
            *(world.account_id, world.worker_id, world.journal_id),
            *(world.club_id, world.connection_id, world.epoch),
        )
        assert row is not None
        assert row["operation_id"] == operation_id
        await disconnect(world)
        page = asyncio.ensure_future(one_page(world.db))
        await wait_until_blocked(world.db, "clean_up_epoch", by=other.get_server_pid())
    await page
    assert await states(world, [operation_id]) == [CHANGED]


async def queued_during_a_disconnect(world: World) -> UUID:
    """An action whose enqueue had looked at the connection when somebody disconnected."""
    async with another(world) as other:
        await other.execute("lock table operations in exclusive mode")
        queued = asyncio.ensure_future(world.one())
        await wait_until_blocked(world.db, "operations", by=other.get_server_pid())
        ended = asyncio.ensure_future(disconnect(world))
        await eventually(lambda: _waits_or_is_over(world, ended))
    await ended
    return await queued


async def _waits_or_is_over(world: World, task: asyncio.Future[None]) -> bool:
    waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
    return task.done() or await world.run(waiting) >= 2


async def test_what_is_queued_during_a_disconnect_is_seen_by_it(world: World) -> None:
    operation_id = await queued_during_a_disconnect(world)
    await clean_up(world)
    assert await states(world, [operation_id]) == [CHANGED]


async def test_twin_an_enqueue_that_does_not_hold_the_gate_is_left_behind(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(basis, "_HOLD_GATES", "select where $1::uuid is null")
    operation_id = await queued_during_a_disconnect(world)
    await clean_up(world)
    assert await world.state(operation_id) == "pending"


async def test_an_epoch_that_cannot_be_cleaned_up_holds_up_no_other(world: World) -> None:
    await world.clock.freeze()
    first = await world.one(assignment(1))
    await disconnect(world)
    await world.clock.advance(timedelta(seconds=1))
    world.connection_id = await reconnect(world)
    second = await world.one(assignment(2))
    await disconnect(world)
    owner = owner_named(world, "epoch_cleanup")
    async with another(world) as other:
        await other.fetch("select from operations where id = $1 for update", first)
        async with world.db.pool.acquire() as connection:
            await connection.execute("set lock_timeout = '50ms'")
        result = await owner.run_pass(Stop())
        assert isinstance(result, Failed)
        assert (result.done, [row.club_id for row in result.poison]) == (1, [world.club_id])
        assert await states(world, [second]) == [CHANGED]
    await clean_up(world)
    assert await states(world, [first]) == [CHANGED]
