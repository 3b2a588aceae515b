"""Nothing is asked of the database until a deadline; at the deadline, and never before it, the work runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import pytest
from tests.decisions.conftest import NINETY_DAYS, Door

from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.db.database import Database
from lastcall.deadlines.lane import OwnerStatus
from lastcall.deadlines.scheduler import Scheduler
from lastcall.decisions.retention.controls import archive, keep
from lastcall.decisions.retention.sweep import retention_owner
from lastcall.testing.fake_clock import FakeClock
from lastcall.testing.quiet import assert_quiet
from lastcall.testing.waiting import eventually

EVERY_KIND = True


class Running:
    """A scheduler with the one owner, and what it says of it."""

    def __init__(self, door: Door) -> None:
        self.door = door
        self.schedulers: list[Scheduler] = []

    async def start(self, clock: Clock = SYSTEM_CLOCK) -> Scheduler:
        """A new process: everything it knows comes from the rows."""
        scheduler = Scheduler(self.door.db, [retention_owner(self.door.db, self.door.kind, clock)], clock)
        self.schedulers.append(scheduler)
        await scheduler.start()
        await eventually(lambda: self.status.reads and not self.status.running)
        return scheduler

    @property
    def status(self) -> OwnerStatus:
        """Of the newest."""
        return self.schedulers[-1].status()[0]


@pytest.fixture
async def running(door: Door) -> AsyncIterator[Running]:
    made = Running(door)
    yield made
    for scheduler in made.schedulers:
        await scheduler.stop()


async def now(database: Database) -> datetime:
    moment: datetime = await database.pool.fetchval("select lastcall_now()")
    return moment


@pytest.mark.clause("RET-09")
async def test_with_no_candidate_nothing_is_sent_until_a_signal_comes(
    database: Database, door: Door, running: Running
) -> None:
    kept, archived, decided = [await door.overdue() for _ in range(3)]
    await keep(database, door.owner, door.club_id, door.kind, kept, seen_version=0)
    await archive(database, door.owner, door.club_id, door.kind, archived, seen_version=0)
    await door.decide(decided)
    await running.start()
    assert running.status.deadline is None

    async with assert_quiet(database, 1.5):
        pass

    request = await door.overdue()
    await eventually(lambda: door.archived_at(request))


@pytest.mark.clause("RET-04", "RET-09")
async def test_it_is_quiet_until_the_deadline_and_the_one_wake_at_it_finds_the_row(
    database: Database, door: Door, running: Running
) -> None:
    await running.start()
    due = await now(database) + timedelta(milliseconds=900)
    # A fraction behind the millisecond: rounded down, the wake would come before the row is due.
    due = due.replace(microsecond=due.microsecond // 1000 * 1000 + 1)
    request = await door.waits(due - NINETY_DAYS)
    passes = running.status.passes
    sent = database.statements
    await eventually(lambda: database.statements > sent)
    assert await now(database) >= due, "not a statement before the deadline"

    archived = await eventually(lambda: door.archived_at(request))

    assert archived >= due
    assert running.status.passes == passes + 1
    await eventually(lambda: not running.status.running)
    assert running.status.deadline is None


@pytest.mark.clause("RET-08")
async def test_a_failure_is_retried_after_thirty_seconds(
    database: Database, door: Door, running: Running
) -> None:
    request = await door.overdue()
    await door.break_row(request)
    clock = FakeClock()
    await running.start(clock)
    await eventually(lambda: running.status.failures == 1 and not running.status.running)
    await door.repair_rows()
    passes, sent = running.status.passes, database.statements

    await clock.advance(timedelta(seconds=29, milliseconds=900))
    assert (running.status.passes, database.statements) == (passes, sent)

    await clock.advance(timedelta(milliseconds=200))
    await eventually(lambda: door.archived_at(request))
    await eventually(lambda: not running.status.running)
    assert running.status.poison == ()


@pytest.mark.clause("RET-06", "RET-08")
async def test_a_backlog_is_worked_off_at_once_and_a_failing_row_holds_up_none_of_it(
    database: Database, door: Door, running: Running
) -> None:
    moment = await now(database) - NINETY_DAYS - timedelta(hours=1)
    broken, *_ = [await door.waits(moment + timedelta(seconds=second)) for second in range(120)]
    await door.break_row(broken)
    await running.start(FakeClock())
    await eventually(lambda: running.status.failures >= 1 and not running.status.running)
    assert await door.archived() == 119
    assert [row.id for row in running.status.poison] == [broken]
    later = await now(database) + timedelta(days=1)
    await door.waits(later - NINETY_DAYS)
    assert running.status.deadline is not None
    assert running.status.deadline - later < timedelta(milliseconds=1)


@pytest.mark.clause("RET-22")
async def test_a_restart_knows_from_the_rows_what_the_process_before_it_knew(
    database: Database, door: Door, running: Running
) -> None:
    first = await running.start()
    await door.waits_since(timedelta(days=1))
    known = running.status.deadline
    assert known is not None
    await first.stop()
    overdue = await door.overdue()
    await running.start()
    await eventually(lambda: door.archived_at(overdue))
    await eventually(lambda: not running.status.running)
    assert running.status.deadline == known
