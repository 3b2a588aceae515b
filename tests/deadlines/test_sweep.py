"""The sweep over real rows, with real locks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from lastcall.db.database import Database
from lastcall.deadlines.batch import BatchOwner
from lastcall.deadlines.cycle import CycleOwner
from lastcall.deadlines.owner import Done, Failed, More, PassResult, Position, Stop
from lastcall.deadlines.poison import KEPT, Candidate, PoisonRows
from lastcall.deadlines.scheduler import Scheduler
from lastcall.deadlines.signals import Signal
from lastcall.deadlines.sweep import SweepOwner
from lastcall.testing.clock import TestClock
from lastcall.testing.fake_clock import FakeClock
from lastcall.testing.locks import wait_until_blocked
from lastcall.testing.quiet import assert_quiet
from lastcall.testing.waiting import eventually
from tests.deadlines.due_rows import CLUB, DueBatches, DueRows

MICROSECOND = timedelta(microseconds=1)
LISTENERS = (
    "select count(*) from pg_stat_activity where query ilike 'listen%' and datname = current_database()"
)


async def one_cycle(owner: CycleOwner) -> tuple[PassResult, int]:
    """Passes until the cycle ends; its result and how many there were."""
    for count in range(1, 100):
        result = await owner.run_pass(Stop())
        if not isinstance(result, More):
            return result, count
    raise AssertionError("the cycle does not end")


@pytest.mark.clause("RET-06", "RET-07", "RET-08")
async def test_a_page_that_fails_whole_does_not_keep_the_row_after_it_from_its_turn(
    rows: DueRows, clock: FakeClock
) -> None:
    bad = sorted(await rows.overdue(100, is_bad=True))
    (last,) = await rows.overdue(1, by=timedelta(hours=1) - MICROSECOND)
    owner = SweepOwner("rows", rows, clock)
    assert await owner.run_pass(Stop()) == More(0)
    assert rows.attempts == bad, "one hundred at most, in the order of their ids"
    result = await owner.run_pass(Stop())
    assert await rows.settled() == {last: 1}
    assert isinstance(result, Failed)
    assert (result.done, result.failures, len(result.poison)) == (1, 100, 100)
    assert result.retry_in == timedelta(seconds=30)
    await rows.heal()
    assert await one_cycle(owner) == (Done(0), 2)
    assert len(await rows.settled()) == 101


@pytest.mark.clause("RET-07")
async def test_rows_of_one_microsecond_are_each_met_once(rows: DueRows) -> None:
    ids = await rows.overdue(250)
    owner = SweepOwner("rows", rows)
    assert (await one_cycle(owner))[1] == 3
    assert rows.attempts == sorted(ids)
    assert set((await rows.settled()).values()) == {1}


class MillisecondCursor(DueRows):
    """The twin of RET-07: the cursor as a language with milliseconds would keep it."""

    async def page(self, after: Position | None, upto: Position, limit: int) -> Sequence[Candidate]:
        if after is not None:
            after = Position(after.time.replace(microsecond=after.time.microsecond // 1000 * 1000), after.id)
        return await super().page(after, upto, limit)


async def test_twin_a_cursor_of_milliseconds_repeats_a_failed_page_for_ever(
    database: Database, rows: DueRows
) -> None:
    await rows.add(*[datetime(2026, 3, 1, 12, 0, 0, 123_456, tzinfo=UTC)] * 100, is_bad=True)
    await rows.add(datetime(2026, 3, 1, 12, 0, 0, 123_457, tzinfo=UTC))
    twin = MillisecondCursor(database)
    owner = SweepOwner("rows", twin)
    for _ in range(5):
        assert isinstance(await owner.run_pass(Stop()), More)
    assert await rows.settled() == {}
    assert (await one_cycle(SweepOwner("rows", rows)))[1] == 2
    assert len(await rows.settled()) == 1


async def pass_while_rows_arrive(owner: CycleOwner, rows: DueRows, passes: int) -> None:
    """Before each pass a hundred more rows fall due, newer than all before them."""
    for n in range(passes):
        await rows.overdue(100, by=timedelta(minutes=30) - n * timedelta(seconds=1))
        await owner.run_pass(Stop())


@pytest.mark.clause("RET-14")
async def test_steady_arrivals_do_not_postpone_a_failed_row(rows: DueRows) -> None:
    (failed,) = await rows.overdue(1, is_bad=True)
    owner = SweepOwner("rows", rows)
    await pass_while_rows_arrive(owner, rows, 1)
    assert rows.attempts.count(failed) == 1
    await rows.heal()
    await pass_while_rows_arrive(owner, rows, 2)
    assert (await rows.settled())[failed] == 1, "the next cycle visits it, whatever arrived meanwhile"


class NoBoundary(SweepOwner):
    """The twin of RET-14: the end of the cycle moves with what arrives."""

    async def _run_pass(self, stop: Stop) -> PassResult:
        if self._boundary is not None:
            self._boundary = await self._rows.boundary() or self._boundary
        return await super()._run_pass(stop)


async def test_twin_without_the_boundary_arrivals_postpone_a_failed_row_for_ever(rows: DueRows) -> None:
    (failed,) = await rows.overdue(1, is_bad=True)
    await rows.overdue(99, by=timedelta(minutes=59))
    owner = NoBoundary("rows", rows)
    await owner.run_pass(Stop())
    await rows.heal()
    await pass_while_rows_arrive(owner, rows, 8)
    assert failed not in await rows.settled()
    assert rows.attempts.count(failed) == 1


@pytest.mark.clause("RET-14")
async def test_a_row_that_keeps_failing_backs_off_while_others_are_settled(rows: DueRows) -> None:
    clock = FakeClock()
    (bad,) = await rows.overdue(1, is_bad=True)
    owner = SweepOwner("rows", rows, clock)
    waits: list[int] = []
    for _ in range(10):
        result, _ = await one_cycle(owner)
        assert isinstance(result, Failed)
        waits.append(round(result.retry_in.total_seconds()))
        attempts = rows.attempts.count(bad)
        await clock.advance(result.retry_in / 2)
        if len(waits) > 1:
            (healthy,) = await rows.overdue(1)
            between, _ = await one_cycle(owner)
            assert isinstance(between, Failed)
            assert (await rows.settled())[healthy] == 1
            assert rows.attempts.count(bad) == attempts, "stepped past: its own retry is not due"
            assert between.failures == 0
        await clock.advance(result.retry_in / 2)
    assert waits == [30, 60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]
    assert [(row.id, row.failures) for row in owner._poison.report()] == [(bad, 10)]
    await rows.heal()
    assert await one_cycle(owner) == (Done(1), 1)
    assert owner._poison.report() == ()


@pytest.mark.clause("RET-07")
async def test_a_page_set_apart_whole_does_not_hide_the_row_after_it(rows: DueRows, clock: FakeClock) -> None:
    await rows.overdue(100, is_bad=True)
    owner = SweepOwner("rows", rows, clock)
    for _ in range(2):
        await one_cycle(owner)
    rows.attempts.clear()
    (healthy,) = await rows.overdue(1, by=timedelta(minutes=1))
    result, passes = await one_cycle(owner)
    assert (rows.attempts, passes) == ([healthy], 2)
    assert isinstance(result, Failed)
    assert result.retry_in == timedelta(seconds=60)


@pytest.mark.clause("RET-22")
async def test_what_failed_is_remembered_by_the_process_alone(rows: DueRows) -> None:
    await rows.overdue(3, is_bad=True)
    before = await rows.db.pool.fetchval("select count(*) from pg_class")
    owner = SweepOwner("rows", rows)
    await one_cycle(owner)
    await one_cycle(owner)
    assert await rows.db.pool.fetchval("select count(*) from pg_class") == before
    rows.attempts.clear()
    await one_cycle(SweepOwner("rows", rows))
    assert len(rows.attempts) == 3, "a new process finds them from the rows"


async def test_rows_that_do_not_fit_into_the_memory_are_tried_in_each_cycle(clock: FakeClock) -> None:
    poison = PoisonRows(clock)
    position = Position(clock.wall(), UUID(int=1))
    rows = [Candidate(CLUB, UUID(int=n), position) for n in range(KEPT + 1)]
    for _ in range(2):
        poison.begin_cycle()
        for row in rows:
            poison.failed(row, RuntimeError("bad"))
        poison.end_cycle()
    assert len(poison.report()) == KEPT
    assert poison.retry_in == timedelta(seconds=30)
    assert [poison.is_set_apart(rows[0]), poison.is_set_apart(rows[-1])] == [True, False]


async def test_a_writer_that_has_the_lock_first_is_seen(database: Database, rows: DueRows) -> None:
    (row,) = await rows.overdue(1)
    owner = SweepOwner("rows", rows)
    async with database.transaction() as tx:
        await tx.raw.execute("update due_rows set due_at = due_at + interval '90 days'")
        sweeping = asyncio.create_task(owner.run_pass(Stop()))
        await wait_until_blocked(database, "due_rows", by=tx.raw.get_server_pid())
    assert await sweeping == Done(1)
    assert (rows.attempts, await rows.settled()) == ([row], {})


class LockAndJudge(DueRows):
    """The twin of engine rule 1: one statement takes the lock and judges by what it saw before."""

    async def settle(self, candidate: Candidate) -> None:
        await self.db.pool.execute(
            """with due as (
                 select 1 from due_rows where club_id = $1 and id = $2 and due_at <= lastcall_now())
               update due_rows set due_at = null, settled = settled + 1
               where club_id = $1 and id = $2 and exists (select 1 from due)""",
            candidate.club_id,
            candidate.id,
        )


async def test_twin_lock_and_judge_in_one_statement_settles_what_a_writer_took_back(
    database: Database, rows: DueRows
) -> None:
    (row,) = await rows.overdue(1)
    owner = SweepOwner("rows", LockAndJudge(database))
    async with database.transaction() as tx:
        await tx.raw.execute("update due_rows set due_at = due_at + interval '90 days'")
        sweeping = asyncio.create_task(owner.run_pass(Stop()))
        await wait_until_blocked(database, "due_rows", by=tx.raw.get_server_pid())
    await sweeping
    assert await rows.settled() == {row: 1}, "wrongly: it is due in ninety days"


@pytest.mark.clause("SCH-05")
async def test_stop_waits_for_the_row_in_hand_and_a_restart_picks_up_the_rest(
    database: Database, rows: DueRows
) -> None:
    ids = sorted(await rows.overdue(5))
    scheduler = Scheduler(database, [SweepOwner("rows", rows)])
    async with database.transaction() as tx:
        await tx.raw.execute("select 1 from due_rows where id = $1 for update", ids[2])
        await scheduler.start()
        await wait_until_blocked(database, "due_rows", by=tx.raw.get_server_pid())
        stopping = asyncio.create_task(scheduler.stop())
        await asyncio.sleep(0)
        assert not stopping.done()
    await stopping
    assert sorted(await rows.settled()) == ids[:3]
    again = Scheduler(database, [SweepOwner("rows", rows)])
    await again.start()
    await eventually(lambda: len(rows.attempts) == 5 and again.status()[0].rows_done == 2)
    await again.stop()
    assert await rows.settled() == dict.fromkeys(ids, 1)


@pytest.mark.clause("SCH-07")
async def test_two_processes_that_sweep_at_once_settle_each_row_once(
    database: Database, database_url: str, rows: DueRows
) -> None:
    ids = await rows.overdue(300)
    other = await Database.open(database_url)
    schedulers = [Scheduler(db, [SweepOwner("rows", DueRows(db))]) for db in (database, other)]
    await asyncio.gather(*(scheduler.start() for scheduler in schedulers))
    await eventually(
        lambda: all(not s.status()[0].running and s.status()[0].reads == 2 for s in schedulers), within=20
    )
    await asyncio.gather(*(scheduler.stop() for scheduler in schedulers))
    await other.close()
    assert await rows.settled() == dict.fromkeys(ids, 1)


@pytest.mark.clause("RET-09", "SCH-01", "SCH-07")
async def test_between_deadlines_there_is_no_sql_and_no_listener(database: Database, rows: DueRows) -> None:
    (overdue,) = await rows.overdue(1)
    await rows.overdue(1, by=timedelta(days=-90))
    scheduler = Scheduler(database, [SweepOwner("rows", rows)])
    await scheduler.start()
    await eventually(lambda: scheduler.status()[0].rows_done == 1 and not scheduler.status()[0].running)
    assert await rows.settled() == {overdue: 1}
    listeners = (
        "select count(*) from pg_stat_activity where query ilike 'listen%' and datname = current_database()"
    )
    assert await database.pool.fetchval(listeners) == 0
    async with assert_quiet(database, 2):
        pass
    await scheduler.stop()


@pytest.mark.clause("RET-04")
async def test_a_deadline_between_two_milliseconds_wakes_once_and_finds_its_row(
    database: Database, rows: DueRows
) -> None:
    scheduler = Scheduler(database, [SweepOwner("rows", rows)])
    await scheduler.start()
    now: datetime = await database.pool.fetchval("select lastcall_now()")
    due = (now + timedelta(milliseconds=300)).replace(microsecond=700_001)
    due += timedelta(seconds=due < now + timedelta(milliseconds=100))
    (row,) = await rows.add(due)
    database.bus.deliver([Signal("rows")])
    await eventually(lambda: scheduler.status()[0].rows_done == 1)
    settled_at = await database.pool.fetchval("select settled_at from due_rows where id = $1", row)
    assert due <= settled_at < due + timedelta(seconds=2)
    assert scheduler.status()[0].passes == 1, "it was not woken a fraction early"
    await scheduler.stop()


@pytest.mark.clause("SCH-06")
async def test_a_deadline_at_infinity_is_only_far_away(database: Database, rows: DueRows) -> None:
    await rows.overdue(1, by=timedelta(days=-1))
    await database.pool.execute("update due_rows set due_at = 'infinity'")
    scheduler = Scheduler(database, [SweepOwner("rows", rows)])
    await scheduler.start()
    await eventually(lambda: scheduler.status()[0].reads == 1 and not scheduler.status()[0].running)
    assert (scheduler.status()[0].failures, rows.attempts) == (0, [])
    wake = scheduler.next_wake()
    assert wake is not None
    assert wake.year == 9999
    await scheduler.stop()


@pytest.mark.clause("SCH-06")
async def test_the_database_clock_that_leaps_makes_due_what_is_due(
    database: Database, rows: DueRows, test_clock: TestClock
) -> None:
    (row,) = await rows.overdue(1, by=timedelta(days=-90))
    scheduler = Scheduler(database, [SweepOwner("rows", rows)])
    await scheduler.start()
    await eventually(lambda: scheduler.status()[0].reads == 1)
    await test_clock.advance(timedelta(days=91))
    database.bus.deliver([Signal("rows")])
    await eventually(lambda: scheduler.status()[0].rows_done == 1)
    await scheduler.stop()
    assert await rows.settled() == {row: 1}


async def test_a_batch_settles_a_page_in_one_transaction(database: Database, rows: DueRows) -> None:
    ids = await rows.overdue(150)
    batches = DueBatches(database)
    owner = BatchOwner("rows", batches)
    assert await owner.run_pass(Stop()) == More(100)
    transactions = await database.pool.fetchval(
        "select count(distinct xmin::text) from due_rows where settled = 1"
    )
    assert transactions == 1
    assert await owner.run_pass(Stop()) == Done(50)
    assert batches.attempts == sorted(ids)


@pytest.mark.clause("RET-07")
async def test_one_bad_row_costs_a_batch_only_itself(database: Database, rows: DueRows) -> None:
    (bad,) = await rows.overdue(1, is_bad=True)
    healthy = await rows.overdue(120)
    owner = BatchOwner("rows", DueBatches(database))
    result, passes = await one_cycle(owner)
    assert isinstance(result, Failed)
    assert ([row.id for row in result.poison], passes) == ([bad], 2)
    assert await rows.settled() == dict.fromkeys(healthy, 1)


@pytest.mark.clause("SCH-05")
async def test_a_stopped_batch_begins_nothing(database: Database, rows: DueRows) -> None:
    await rows.overdue(3)
    stop = Stop()
    stop.request()
    for owner in (BatchOwner("rows", DueBatches(database)), SweepOwner("rows", rows)):
        assert await owner.run_pass(stop) == More(0)
    assert await rows.settled() == {}
