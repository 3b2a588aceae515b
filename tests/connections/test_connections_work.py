"""The work board: told at once, told once, and not a statement while there is nothing to tell."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

import pytest
from tests.connections.conftest import Site, build_site
from tests.connections.membership_kit import S, put

from lastcall.clubs.service import add_club
from lastcall.connections.connect import connect_club
from lastcall.connections.leases import release_lease
from lastcall.connections.looks import LookWork
from lastcall.connections.signals import work
from lastcall.connections.states import Feature
from lastcall.connections.switches import set_connection_switch, set_fleet_switch
from lastcall.connections.work import Due, Ready, WorkBoard
from lastcall.db.ids import new_id
from lastcall.errors import Unavailable
from lastcall.testing.connecting import activate
from lastcall.testing.fake_clock import FakeClock
from lastcall.testing.quiet import assert_quiet
from lastcall.testing.waiting import WITHIN, eventually

LONG = timedelta(minutes=5)
SHORT = timedelta(milliseconds=50)


class Rows:
    """A work source over a table of the test."""

    def __init__(self, site: Site) -> None:
        self._db = site.db
        self.reads = 0

    async def ready(self, account_id: UUID) -> Sequence[Ready]:
        self.reads += 1
        rows = await self._db.pool.fetch(
            "select club_id, connection_id, min(ready_at) as ready_at from job"
            " where account_id = $1 group by 1, 2",
            account_id,
        )
        return [Ready(row["club_id"], row["connection_id"], row["ready_at"]) for row in rows]


@pytest.fixture
async def rows(site) -> Rows:
    await site.db.pool.execute(
        "create table job (account_id uuid, club_id uuid, connection_id uuid, ready_at timestamptz)"
    )
    return Rows(site)


@pytest.fixture
def board(site, rows) -> WorkBoard:
    return WorkBoard(site.db, [rows])


async def add(site: Site, delay: timedelta = timedelta(0), *, says: bool = True) -> datetime:
    async with site.db.transaction() as tx:
        ready_at = await tx.raw.fetchval(
            "insert into job values ($1, $2, $3, lastcall_now() + $4::interval) returning ready_at",
            site.worker.account_id,
            site.club_id,
            site.connection_id,
            delay,
        )
        if says:
            tx.publish(work(site.worker.account_id, ready_at))
    return ready_at


def wait(board: WorkBoard, site: Site, life: timedelta = LONG, worker_id: UUID | None = None):
    return asyncio.create_task(board.wait(site.worker.account_id, worker_id or site.worker.worker_id, life))


async def parked(board: WorkBoard, site: Site) -> None:
    """Until the board has nothing left to do for whoever waits: all is read, and none of it under way."""

    def is_still() -> bool:
        account = board._accounts.get(site.worker.account_id)
        return (
            account is not None
            and bool(account.waiters)
            and not account.reading.locked()
            and not board._needs_reading(account)
        )

    await eventually(is_still)


async def test_what_is_ready_is_told_at_once(site, board):
    await add(site)
    assert await wait(board, site) == [Due(site.club_id, site.connection_id)]


async def test_a_waiter_is_told_when_work_is_committed(site, board):
    waiting = wait(board, site)
    await parked(board, site)
    await add(site)
    async with asyncio.timeout(WITHIN):
        assert await waiting == [Due(site.club_id, site.connection_id)]


async def test_a_waiter_is_told_when_a_known_time_comes_and_not_before(site, board):
    ready_at = await add(site, timedelta(seconds=0.4))
    due = await wait(board, site)
    assert due == [Due(site.club_id, site.connection_id)]
    assert await site.db.pool.fetchval("select lastcall_now()") >= ready_at


async def test_a_later_signal_about_earlier_work_brings_the_answer_forward(site, board):
    await add(site, timedelta(hours=1))
    waiting = wait(board, site)
    await parked(board, site)
    await add(site, timedelta(seconds=0.2))
    async with asyncio.timeout(WITHIN):
        assert await waiting


async def test_a_wait_that_ends_with_nothing_and_its_renewal_cost_no_statement(site, board, rows):
    await add(site, timedelta(days=90))
    assert await wait(board, site, SHORT) == []
    sent, reads = site.db.statements, rows.reads
    for _ in range(5):
        assert await wait(board, site, SHORT) == []
    assert (site.db.statements, rows.reads) == (sent, reads)


async def test_nothing_is_sent_while_a_collector_waits(site, board):
    await add(site, timedelta(days=90))
    waiting = wait(board, site)
    await parked(board, site)
    async with assert_quiet(site.db, 2):
        assert not waiting.done()
    waiting.cancel()


async def test_all_waiters_of_an_account_share_one_read(site, board, rows):
    waiting = [wait(board, site, worker_id=new_id()) for _ in range(5)]
    await eventually(lambda: rows.reads)
    await parked(board, site)
    assert rows.reads == 1
    for task in waiting:
        task.cancel()


async def test_one_due_connection_is_offered_to_one_of_several_workers(site, board):
    waiting = [wait(board, site, worker_id=new_id()) for _ in range(3)]
    await parked(board, site)
    await add(site)
    await asyncio.wait(waiting, timeout=WITHIN, return_when=asyncio.FIRST_COMPLETED)
    await parked(board, site)
    pending = [task for task in waiting if not task.done()]
    assert len(pending) == 2
    for task in pending:
        task.cancel()


async def test_a_newer_wait_of_the_same_worker_ends_the_older_with_nothing(site, board):
    older = wait(board, site)
    await parked(board, site)
    newer = wait(board, site)
    async with asyncio.timeout(WITHIN):
        assert await older == []
    assert not newer.done()
    await add(site)
    async with asyncio.timeout(WITHIN):
        assert await newer


async def test_a_cancelled_wait_leaves_nothing_behind(site, board):
    waiting = wait(board, site)
    await parked(board, site)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert [presence.is_waiting for presence in board.presence()] == [False]


async def test_stopping_ends_every_wait_at_once_and_refuses_new_ones(site, board):
    waiting = [wait(board, site, worker_id=new_id()) for _ in range(3)]
    await parked(board, site)
    board.stop()
    async with asyncio.timeout(WITHIN):
        assert await asyncio.gather(*waiting) == [[], [], []]
    with pytest.raises(Unavailable):
        await wait(board, site)


async def test_a_leased_connection_is_not_offered_until_its_lease_is_released(site, board):
    held = await site.lease()
    await add(site)
    waiting = wait(board, site)
    await parked(board, site)
    assert not waiting.done()
    await release_lease(site.db, site.worker, held)
    async with asyncio.timeout(WITHIN):
        assert await waiting == [Due(site.club_id, site.connection_id)]


async def test_a_connection_that_may_not_work_is_not_offered_until_it_may(site, board):
    await set_connection_switch(site.db, None, site.club_id, site.connection_id, is_on=True)
    await add(site)
    waiting = wait(board, site)
    await parked(board, site)
    await set_fleet_switch(site.db, None, is_on=True)
    await set_connection_switch(site.db, None, site.club_id, site.connection_id, is_on=False)
    await parked(board, site)
    assert not waiting.done()
    await set_fleet_switch(site.db, None, is_on=False)
    async with asyncio.timeout(WITHIN):
        assert await waiting


async def test_a_connection_that_stays_due_unchanged_is_offered_after_growing_pauses(site, rows, test_clock):
    await test_clock.freeze()
    clock = FakeClock()
    board = WorkBoard(site.db, [rows], clock)
    await add(site)
    assert await wait(board, site)
    for pause in (1, 2, 4, 8):
        waiting = wait(board, site)
        await clock.advance(timedelta(seconds=pause) - timedelta(milliseconds=1))
        assert not waiting.done()
        await clock.advance(timedelta(milliseconds=1))
        assert await waiting


async def test_new_work_of_a_connection_is_offered_without_that_pause(site, rows, test_clock):
    await test_clock.freeze()
    clock = FakeClock()
    board = WorkBoard(site.db, [rows], clock)
    await add(site)
    assert await wait(board, site)
    await site.db.pool.execute("delete from job")
    for one in (test_clock, clock):
        await one.advance(timedelta(milliseconds=100))
    await add(site)
    async with asyncio.timeout(WITHIN):
        assert await wait(board, site)


async def test_new_work_beside_a_look_that_cannot_be_made_is_offered_without_that_pause(
    site, rows, test_clock
):
    """Of one connection: somebody's urgent action does not wait because the aggregates are not got at."""
    await test_clock.freeze()
    await put(site, S.ACTIVE, next_look_at=await test_clock.now())
    clock = FakeClock()
    board = WorkBoard(site.db, [LookWork(site.db), rows], clock)
    for pause in (1, 2, 4, 8):
        assert await wait(board, site)
        await clock.advance(timedelta(seconds=pause))
    assert await wait(board, site)
    await add(site)
    async with asyncio.timeout(WITHIN):
        assert await wait(board, site)


async def test_work_of_another_account_wakes_nobody(site, board):
    other = await build_site(site.db, 2)
    waiting = wait(board, site)
    await parked(board, site)
    await add(other)
    assert await wait(board, other) == [Due(other.club_id, other.connection_id)]
    assert not waiting.done()
    waiting.cancel()


async def test_a_commit_of_unknown_outcome_makes_the_board_look(site, board, rows):
    waiting = wait(board, site)
    await parked(board, site)
    await add(site, says=False)
    assert not waiting.done()
    site.db.bus.unclear([work(site.worker.account_id)], xid=1)
    async with asyncio.timeout(WITHIN):
        assert await waiting


async def test_a_failed_read_is_made_again_by_the_next_wait(site, board):
    await site.db.pool.execute("alter table job rename to gone")
    with pytest.raises(Exception, match="job"):
        await wait(board, site)
    await site.db.pool.execute("alter table gone rename to job")
    await add(site)
    assert await wait(board, site)


async def test_an_account_that_a_command_lets_go_on_is_looked_at_again_by_the_next_wait(site, board):
    await add(site)
    await site.set("accounts", kill_switch=True)
    assert await board.wait(site.worker.account_id, new_id(), SHORT) == []
    # A command of the host runs in a process of its own, and tells this one nothing.
    await site.set("accounts", kill_switch=False)
    async with asyncio.timeout(WITHIN):
        due = await board.wait(site.worker.account_id, new_id(), LONG)
    assert due == [Due(site.club_id, site.connection_id)]


async def test_a_clock_that_was_set_forward_makes_what_is_due_by_it_due(site, rows, test_clock):
    clock = FakeClock()
    board = WorkBoard(site.db, [rows], clock)
    await test_clock.freeze()
    await add(site, timedelta(hours=1), says=False)
    waiting = asyncio.create_task(board.wait(site.worker.account_id, new_id(), SHORT))
    await eventually(lambda: rows.reads == 1)
    await clock.advance(SHORT)
    assert await waiting == []
    await test_clock.advance(timedelta(hours=2))
    clock.set_wall(clock.wall() + timedelta(hours=2))
    async with asyncio.timeout(WITHIN):
        due = await board.wait(site.worker.account_id, new_id(), LONG)
    assert due == [Due(site.club_id, site.connection_id)]


async def test_a_collector_is_named_what_waits_longest_and_the_rest_without_a_pause(site, board):
    ready = {site.connection_id: timedelta(seconds=-1)}
    clubs = {site.connection_id: site.club_id}
    for number in (2, 3):
        club_id = await add_club(site.db, None, f"Club {number}", f"club-{number}", "UTC", site.owner_id)
        connection_id = await connect_club(
            site.db,
            None,
            club_id,
            group_id=f"grp_{number}",
            account_id=site.worker.account_id,
            features=list(Feature),
        )
        await activate(site.db, club_id, connection_id)
        ready[connection_id], clubs[connection_id] = timedelta(seconds=-number), club_id
    for connection_id, since in ready.items():
        await site.db.pool.execute(
            "insert into job values ($1, $2, $3, lastcall_now() + $4::interval)",
            site.worker.account_id,
            clubs[connection_id],
            connection_id,
            since,
        )
    longest_first = sorted(ready, key=lambda connection_id: ready[connection_id])
    offered = []
    for _ in ready:
        offered += await board.wait(site.worker.account_id, site.worker.worker_id, SHORT, room=1)
    assert [due.connection_id for due in offered] == longest_first
