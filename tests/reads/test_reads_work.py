"""Collectors are woken for reads that they can take, and for nothing else; an idle club costs no statement."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from tests.reads.reads_world import Reading, ban_row

from lastcall.connections.work import Ready, WorkBoard
from lastcall.db.bus import Hint
from lastcall.reads.states import READ_LIFE
from lastcall.reads.work import ReadWork
from lastcall.testing.quiet import assert_quiet
from lastcall.testing.waiting import eventually


async def ready(reading: Reading) -> list[Ready]:
    return list(await ReadWork(reading.db).ready(reading.world.account_id))


async def test_the_oldest_read_that_can_be_claimed_is_named(reading: Reading) -> None:
    assert await ready(reading) == []
    first = await reading.ask("bans")
    await reading.ask("requests")
    world = reading.world
    assert await ready(reading) == [Ready(world.club_id, world.connection_id, first.requested_at)]
    held = await reading.claim()
    assert held is not None
    assert [one.ready_at > first.requested_at for one in await ready(reading)] == [True]
    assert await reading.claim() is not None
    assert await ready(reading) == []
    await reading.complete(held, ban_row(1))
    await reading.take_over()
    assert len(await ready(reading)) == 1


@pytest.mark.parametrize(
    "change",
    [
        "update connections set epoch = epoch + interval '1 second'",
        "update connections set state = 'connecting'",
        "update connections set state = 'disconnecting'",
        "update accounts set credential_generation = 2",
    ],
)
async def test_what_no_claim_could_take_wakes_nobody(reading: Reading, change: str) -> None:
    await reading.ask()
    await reading.run(change)
    assert await ready(reading) == []


async def test_what_nobody_waits_for_any_more_wakes_nobody(reading: Reading) -> None:
    await reading.clock.freeze()
    await reading.ask()
    await reading.clock.advance(READ_LIFE - timedelta(microseconds=1))
    assert len(await ready(reading)) == 1
    await reading.clock.advance(timedelta(microseconds=1))
    assert await ready(reading) == []


async def test_asking_wakes_a_waiting_collector_which_cost_nothing_until_then(reading: Reading) -> None:
    await reading.run("update leases set released_at = lastcall_now()")
    board = WorkBoard(reading.db, [ReadWork(reading.db)])
    world = reading.world
    waiting = asyncio.ensure_future(board.wait(world.account_id, world.worker_id, timedelta(minutes=5)))
    await eventually(lambda: bool(board.presence()) and board.presence()[0].is_waiting)

    async def is_known() -> bool:
        return not board._accounts[world.account_id].is_dirty

    await eventually(is_known)
    async with assert_quiet(reading.db, 1.5):
        pass
    assert not waiting.done()
    await reading.ask()
    due = await asyncio.wait_for(waiting, 10)
    assert [(one.club_id, one.connection_id) for one in due] == [(world.club_id, world.connection_id)]
    board.stop()


async def test_pages_that_wait_are_told_of_every_end(reading: Reading) -> None:
    heard: list[Hint] = []
    reading.db.bus.subscribe(Hint, heard.append)
    told = Hint(reading.world.club_id, "reads")
    held = await reading.claimed("bans")
    assert told not in heard
    assert await reading.complete(held, ban_row(1))
    assert heard.count(told) == 1
    held = await reading.claimed("requests")
    assert await reading.steps.fail(reading.world.worker, held, "timeout")
    assert heard.count(told) == 2
    await reading.ask("posts")
    await reading.run("delete from staff_assignments")
    assert await reading.claim() is None
    assert heard.count(told) == 3
