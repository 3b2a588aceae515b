"""The deadline of an item that waits is armed whenever its row may be there, and for nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import UUID

import pytest
from tests.decisions.conftest import NINETY_DAYS, Door

from lastcall.db.database import Database
from lastcall.deadlines.lane import OwnerStatus
from lastcall.deadlines.scheduler import Scheduler
from lastcall.decisions.retention.controls import keep, unkeep
from lastcall.decisions.retention.kinds.approval import APPROVAL
from lastcall.decisions.retention.sweep import retention_owner
from lastcall.errors import Unavailable
from lastcall.testing.fake_clock import FakeClock
from lastcall.testing.proxy import Cut, CuttingProxy
from lastcall.testing.waiting import eventually

EVERY_KIND = True

AGE = timedelta(days=1)
UNTIL_READ = timedelta(seconds=31)  # a signal without a deadline is read within 30 seconds


class Ear:
    """A server process behind a proxy: its database, its scheduler on a clock of its own, its door."""

    def __init__(self, far: Database, proxy: CuttingProxy, door: Door) -> None:
        self.db, self.proxy, self.clock = far, proxy, FakeClock()
        self.door = type(door)(far, door.owner, door.club_id)
        self.scheduler = Scheduler(far, [retention_owner(far, door.kind, self.clock)], self.clock)

    @property
    def status(self) -> OwnerStatus:
        return self.scheduler.status()[0]

    async def rest(self) -> None:
        """Until the owner is at rest again."""
        await self.clock.rest()
        await eventually(lambda: not self.status.running)

    async def half_a_minute(self) -> None:
        await self.clock.advance(UNTIL_READ)
        await self.rest()


@pytest.fixture
async def ear(database_url: str, door: Door) -> AsyncIterator[Ear]:
    async with CuttingProxy(database_url) as proxy:
        far = await Database.open(proxy.url)
        ear = Ear(far, proxy, door)
        await ear.scheduler.start()
        await eventually(lambda: ear.status.reads and not ear.status.running)
        assert ear.status.deadline is None
        yield ear
        await ear.scheduler.stop()
        await far.close()


async def is_armed_for(ear: Ear, request: UUID) -> bool:
    """Whether the saved deadline is the row's, to the millisecond and not before."""
    due = await ear.door.due_at(request)
    assert due is not None
    saved = ear.status.deadline
    return saved is not None and timedelta(0) <= saved - due < timedelta(milliseconds=1)


@pytest.mark.clause("ACC-09")
async def test_a_commit_arms_the_deadline_without_a_read(ear: Ear) -> None:
    reads = ear.status.reads
    request = await ear.door.waits_since(AGE)
    assert await is_armed_for(ear, request)
    assert ear.status.reads == reads


@pytest.mark.clause("ACC-09")
async def test_a_rollback_arms_nothing(ear: Ear) -> None:
    with pytest.raises(LookupError):
        async with ear.db.transaction():
            await ear.door.waits_since(AGE)
            raise LookupError
    assert ear.status.deadline is None
    assert ear.status.signals == 0


@pytest.mark.clause("ACC-09")
async def test_in_a_callers_transaction_the_deadline_is_armed_after_the_outermost_commit(ear: Ear) -> None:
    async with ear.db.transaction():
        with pytest.raises(LookupError):
            async with ear.db.transaction():
                await ear.door.waits_since(2 * AGE)
                raise LookupError
        async with ear.db.transaction():
            request = await ear.door.waits_since(AGE)
        assert ear.status.deadline is None, "a released savepoint is no commit"
    assert await is_armed_for(ear, request)
    assert await ear.db.pool.fetchval(f"select count(*) from {ear.door.kind.table.name}") == 1


async def lose_the_commit(ear: Ear, cut: Cut) -> None:
    """Record an item of yesterday and lose the connection at its COMMIT."""
    invite_id = await ear.door.prepare()
    yesterday = await ear.db.pool.fetchval("select lastcall_now()") - AGE
    ear.proxy.arm(cut)
    with pytest.raises(Unavailable):
        await ear.door.waits(yesterday, invite_id)


@pytest.mark.clause("ACC-09")
async def test_an_unclear_commit_that_took_effect_keeps_the_deadline_armed(ear: Ear) -> None:
    await lose_the_commit(ear, Cut.AFTER)
    request = await ear.db.pool.fetchval(f"select id from {ear.door.kind.table.name}")
    assert await is_armed_for(ear, request)
    for _ in range(5):
        await ear.half_a_minute()
        assert await is_armed_for(ear, request)
    assert ear.status.unclear_commits == 0


@pytest.mark.clause("ACC-09")
async def test_an_unclear_commit_that_came_to_nothing_is_read_until_that_is_known(ear: Ear) -> None:
    await lose_the_commit(ear, Cut.BEFORE)
    assert ear.status.deadline is not None, "it may be there"
    for _ in range(3):
        await ear.half_a_minute()
    assert ear.status.unclear_commits == 0
    assert await ear.db.pool.fetchval(f"select count(*) from {ear.door.kind.table.name}") == 0
    reads = ear.status.reads
    for _ in range(3):
        await ear.half_a_minute()
    assert ear.status.reads == reads, "once it is known, nothing more is asked"


@pytest.mark.clause("ACC-09")
async def test_a_row_that_appears_late_finds_its_deadline_armed(ear: Ear) -> None:
    await lose_the_commit(ear, Cut.LATE)
    for _ in range(4):
        await ear.half_a_minute()
    assert ear.status.unclear_commits == 1, "it is asked for as long as it is in progress"
    assert await ear.db.pool.fetchval(f"select count(*) from {ear.door.kind.table.name}") == 0
    await ear.proxy.release()
    request = await ear.db.pool.fetchval(f"select id from {ear.door.kind.table.name}")
    await ear.half_a_minute()
    assert await is_armed_for(ear, request)
    await ear.half_a_minute()
    assert ear.status.unclear_commits == 0


@pytest.mark.clause("ACC-09")
async def test_a_writer_that_is_cancelled_during_commit_leaves_its_deadline_armed(ear: Ear) -> None:
    invite_id = await ear.door.prepare()
    yesterday = await ear.db.pool.fetchval("select lastcall_now()") - AGE
    ear.proxy.arm(Cut.SILENT)
    writing = asyncio.create_task(ear.door.waits(yesterday, invite_id))
    await ear.proxy.reached.wait()
    writing.cancel()
    await ear.proxy.release(answer=True)
    with pytest.raises(asyncio.CancelledError):
        await writing
    request = await ear.db.pool.fetchval(f"select id from {ear.door.kind.table.name}")
    assert await is_armed_for(ear, request)


async def test_each_write_that_takes_a_deadline_away_is_read_within_half_a_minute(ear: Ear) -> None:
    door = ear.door
    decided, moved, kept = [await door.waits_since(days * AGE) for days in (9, 8, 7)]
    # A young hint outlives a read that may have begun before its row was there; these have grown old.
    await ear.clock.advance(timedelta(minutes=2))
    await door.decide(decided, "approved")
    await ear.half_a_minute()
    assert await is_armed_for(ear, moved)
    await door.move(moved)
    await ear.half_a_minute()
    assert await is_armed_for(ear, kept)
    await keep(ear.db, door.owner, door.club_id, door.kind, kept, seen_version=0)
    await ear.half_a_minute()
    assert await is_armed_for(ear, moved)
    reads = ear.status.reads
    await unkeep(ear.db, door.owner, door.club_id, door.kind, kept, seen_version=1)
    assert await is_armed_for(ear, kept)
    assert ear.status.reads == reads


async def test_twin_without_unclear_messages_a_row_that_is_there_is_not_armed(ear: Ear) -> None:
    ear.db.bus._unclear_handlers.clear()
    await lose_the_commit(ear, Cut.AFTER)
    for _ in range(3):
        await ear.half_a_minute()
    assert ear.status.deadline is None
    assert (
        await ear.db.pool.fetchval(
            f"select count(*) from {ear.door.kind.table.name} where archive_due_at is not null"
        )
        == 1
    )


async def test_twin_without_its_listener_an_overdue_request_is_never_found(
    ear: Ear,
    unregistered: None,
) -> None:
    # What changes approvals stands in the same room and calls it itself.
    is_found = ear.door.kind is APPROVAL
    request = await ear.door.waits_since(NINETY_DAYS + AGE)
    for _ in range(3):
        await ear.half_a_minute()
    assert ear.status.deadline is None
    assert (await ear.door.archived_at(request) is not None) is is_found
