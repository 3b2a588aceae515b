"""Drain and stop in the middle of both kinds' sweeps: the row in hand is finished, and the rest waits in the rows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import UUID

import pytest
from tests.decisions.conftest import Desk, Door

from lastcall.db.database import Database
from lastcall.deadlines.scheduler import Scheduler
from lastcall.decisions.retention.sweep import retention_owner
from lastcall.testing.locks import wait_until_blocked
from lastcall.testing.quiet import assert_quiet
from lastcall.testing.waiting import eventually


class Backlog:
    """Five overdue items of one kind, the oldest first."""

    def __init__(self, door: Door, items: Sequence[UUID]) -> None:
        self.door = door
        self.items = list(items)

    async def archived(self) -> list[bool]:
        return [await self.door.archived_at(item) is not None for item in self.items]

    async def is_through(self) -> bool:
        return all(await self.archived())


@pytest.fixture
async def backlogs(database: Database, door: Door) -> list[Backlog]:
    """One of each kind, in one club."""
    return [
        Backlog(one, [await one.overdue(timedelta(minutes=10 - n)) for n in range(5)])
        for one in (door, Desk(database, door.owner, door.club_id))
    ]


def scheduler_of(database: Database, backlogs: Sequence[Backlog]) -> Scheduler:
    return Scheduler(database, [retention_owner(database, one.door.kind) for one in backlogs])


@asynccontextmanager
async def in_the_middle(
    database: Database, scheduler: Scheduler, backlogs: Sequence[Backlog]
) -> AsyncIterator[None]:
    """Both sweeps have begun, and wait for the second of their rows, which somebody holds until the end."""
    connection = await database.connect()
    try:
        async with connection.transaction():
            for one in backlogs:
                held = f"select from {one.door.kind.table.name} where id = $1 for no key update"
                await connection.execute(held, one.items[1])
            await scheduler.start()
            for one in backlogs:
                settling = f"settle_{one.door.kind.name}"
                await wait_until_blocked(database, settling, by=connection.get_server_pid())
            yield
    finally:
        await connection.close()


@pytest.mark.clause("SCH-05", "DEC-02")
async def test_a_stop_in_the_middle_finishes_the_row_in_hand_of_each_kind_and_a_restart_does_the_rest(
    database: Database, backlogs: list[Backlog]
) -> None:
    first = scheduler_of(database, backlogs)
    async with in_the_middle(database, first, backlogs):
        stopping = asyncio.create_task(first.stop())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(stopping), 0.2)
    await stopping
    assert [await one.archived() for one in backlogs] == [[True, True, False, False, False]] * 2

    second = scheduler_of(database, backlogs)
    await second.start()
    for one in backlogs:
        await eventually(one.is_through)
    await second.stop()


@pytest.mark.clause("SCH-04", "DEC-02")
async def test_a_drain_in_the_middle_lets_the_page_end_and_what_comes_meanwhile_is_done_after_it(
    database: Database, backlogs: list[Backlog], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lastcall.deadlines.cycle.PAGE", 2)
    scheduler = scheduler_of(database, backlogs)
    async with in_the_middle(database, scheduler, backlogs):
        scheduler.drain()
    await eventually(lambda: not any(owner.running for owner in scheduler.status()))
    for one in backlogs:
        one.items.append(await one.door.overdue())
    async with assert_quiet(database, 0.5):
        pass
    assert [await one.archived() for one in backlogs] == [[True, True, *[False] * 4]] * 2

    scheduler.undrain()
    for one in backlogs:
        await eventually(one.is_through)
    await scheduler.stop()
