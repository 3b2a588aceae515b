"""The scheduler's rules, on a clock that the test moves and owners that count what is asked of them."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from lastcall.deadlines.owner import Early, Failed, PoisonRow, Position
from lastcall.deadlines.signals import Signal
from lastcall.testing.fake_clock import FakeClock
from tests.deadlines.scripted import FakeServer, ScriptedOwner, running

SECOND = timedelta(seconds=1)
MICROSECOND = timedelta(microseconds=1)
ZERO = UUID(int=0)


@pytest.mark.clause("SCH-01")
async def test_start_reads_each_deadline_once_and_runs_what_is_overdue_at_once(server: FakeServer) -> None:
    overdue = ScriptedOwner(server, "overdue", [server.now - timedelta(days=3)])
    future = ScriptedOwner(server, "future", [server.now + timedelta(days=3)])
    began = server.now
    async with running(server, overdue, future) as scheduler:
        assert overdue.settled == [(began - timedelta(days=3), began)]
        assert len(overdue.reads) == 2, "one read to find it and one for the deadline after it"
        assert (len(future.reads), future.passes) == (1, [])
        assert [status.deadline for status in scheduler.status()] == [None, began + timedelta(days=3)]


@pytest.mark.clause("RET-09", "SCH-03")
async def test_with_nothing_due_nothing_is_asked_until_a_signal_comes(
    server: FakeServer, clock: FakeClock
) -> None:
    owner = ScriptedOwner(server)
    async with running(server, owner) as scheduler:
        await clock.advance(timedelta(days=30))
        assert (len(owner.reads), owner.passes) == (1, [])
        assert scheduler.next_wake() is None
        server.bus.deliver([Signal("owner")])
        await clock.rest()
        assert (len(owner.reads), owner.passes) == (2, [])


@pytest.mark.clause("SCH-06")
@pytest.mark.parametrize("far", [timedelta(days=90), timedelta(days=3650), timedelta(days=365 * 900)])
async def test_a_far_deadline_is_met_to_the_microsecond_without_a_read(
    server: FakeServer, clock: FakeClock, far: timedelta
) -> None:
    due = server.now + min(far, timedelta(days=400)) + 7 * MICROSECOND
    owner = ScriptedOwner(server, due=[server.now + far + 7 * MICROSECOND])
    async with running(server, owner) as scheduler:
        if far > timedelta(days=400):
            server.bus.deliver([Signal("owner", server.now + timedelta(days=365 * 7000))])
            await clock.advance(timedelta(days=30))
            assert scheduler.next_wake() == owner.due[0]
            assert (len(owner.reads), owner.passes) == (1, [])
            return
        await clock.advance(due - server.now - MICROSECOND)
        assert (len(owner.reads), owner.passes) == (1, [])
        await clock.advance(MICROSECOND)
        assert owner.settled == [(due, due)]


@pytest.mark.clause("SCH-06")
async def test_waits_are_cut_into_hours(server: FakeServer, clock: FakeClock) -> None:
    owner = ScriptedOwner(server, due=[server.now + timedelta(days=2)])
    async with running(server, owner):
        for _ in range(40):
            assert clock.next_sleeper is not None
            assert clock.next_sleeper <= timedelta(hours=1)
            await clock.advance(timedelta(minutes=53))
        assert len(owner.reads) == 1


@pytest.mark.clause("SCH-03")
async def test_a_signal_with_a_deadline_lowers_it_and_costs_no_read(
    server: FakeServer, clock: FakeClock
) -> None:
    late, early = server.now + timedelta(hours=8), server.now + timedelta(hours=1, microseconds=1)
    owner = ScriptedOwner(server, due=[late])
    async with running(server, owner):
        owner.due.append(early)
        server.bus.deliver(
            [Signal("owner", early), Signal("owner", late + SECOND), Signal("stranger", early)]
        )
        await clock.advance(timedelta(hours=1))
        assert (len(owner.reads), owner.passes) == (1, [])
        await clock.advance(MICROSECOND)
        assert owner.settled == [(early, early)]
        assert len(owner.reads) == 2


@pytest.mark.clause("SCH-03")
async def test_signals_without_a_deadline_cause_one_read_in_thirty_seconds(
    server: FakeServer, clock: FakeClock
) -> None:
    owner = ScriptedOwner(server)
    began = server.now
    async with running(server, owner) as scheduler:
        for _ in range(200):
            server.bus.deliver([Signal("owner")])
            await clock.advance(SECOND / 2)
        assert owner.reads[1:] == [began + n * 30 * SECOND for n in range(4)]
        (status,) = scheduler.status()
        assert (status.signals, status.coalesced) == (200, 200 - 5)


@pytest.mark.clause("SCH-03")
async def test_a_saved_deadline_does_not_wait_for_the_signals_budget(
    server: FakeServer, clock: FakeClock
) -> None:
    due = server.now + 5 * SECOND
    owner = ScriptedOwner(server, due=[due])
    async with running(server, owner):
        server.bus.deliver([Signal("owner")])
        await clock.advance(SECOND)
        server.bus.deliver([Signal("owner")])
        await clock.advance(4 * SECOND)
        assert owner.settled == [(due, due)]


async def test_early_comes_back_after_exactly_that_delay_and_is_no_failure(
    server: FakeServer, clock: FakeClock
) -> None:
    due = server.now + SECOND
    owner = ScriptedOwner(server, due=[due])
    owner.results = [Early(1_234_567 * MICROSECOND)]
    async with running(server, owner) as scheduler:
        await clock.advance(10 * SECOND)
        assert owner.passes == [due, due + 1_234_567 * MICROSECOND]
        (status,) = scheduler.status()
        assert (status.failures, status.last_error, status.retry) == (0, None, None)


async def test_a_pass_for_something_else_leaves_the_saved_deadline(
    server: FakeServer, clock: FakeClock
) -> None:
    due = server.now + timedelta(minutes=1)
    owner = ScriptedOwner(server, due=[due])
    owner.results = [Early(timedelta(hours=1))]
    async with running(server, owner):
        server.bus.deliver([Signal("owner", server.now + SECOND)])
        await clock.advance(timedelta(minutes=1))
        assert owner.settled == [(due, due)]


@pytest.mark.clause("RET-08")
@pytest.mark.parametrize("failure", [Failed("no"), ConnectionError("the server is away")])
async def test_a_failure_is_tried_again_after_thirty_seconds(
    server: FakeServer, clock: FakeClock, failure: Failed | Exception
) -> None:
    due = server.now + SECOND
    owner = ScriptedOwner(server, due=[due])
    owner.results = [failure, failure]
    async with running(server, owner) as scheduler:
        await clock.advance(SECOND)
        (status,) = scheduler.status()
        assert status.retry == due + 30 * SECOND
        await clock.advance(timedelta(minutes=5))
        assert owner.passes == [due, due + 30 * SECOND, due + 60 * SECOND]
        assert owner.settled == [(due, due + 60 * SECOND)]
        assert len(owner.reads) == 2, "failures read nothing"


async def test_an_outage_costs_one_attempt_in_thirty_seconds_and_no_deadline(
    server: FakeServer, clock: FakeClock
) -> None:
    due = server.now + timedelta(minutes=2)
    owner = ScriptedOwner(server, due=[due])
    async with running(server, owner):
        owner.read_fails = True
        server.bus.deliver([Signal("owner")])
        await clock.advance(SECOND * 95)
        assert len(owner.reads) == 1 + 4
        await clock.advance(SECOND * 25)
        assert owner.settled == [(due, due)], "the deadline that was saved before the outage still counts"
        owner.read_fails = False
        await clock.advance(SECOND * 30)
        reads = len(owner.reads)
        await clock.advance(timedelta(days=1))
        assert len(owner.reads) == reads


@pytest.mark.clause("RET-14")
async def test_rows_set_apart_neither_hold_up_healthy_ones_nor_wait_for_them(
    server: FakeServer, clock: FakeClock
) -> None:
    began = server.now
    boundary = Position(began, ZERO)
    healthy = [began + 10 * SECOND, began + 20 * SECOND]
    poison = (PoisonRow(ZERO, ZERO, began, 2, "bad", 60 * SECOND),)
    owner = ScriptedOwner(server, due=[began, *healthy])
    owner.results = [Failed("bad", retry_in=60 * SECOND, beyond=boundary, poison=poison)]
    async with running(server, owner) as scheduler:
        assert owner.beyonds == [None, boundary]
        (status,) = scheduler.status()
        assert (status.deadline, status.retry, status.poison) == (healthy[0], began + 60 * SECOND, poison)
        owner.results = [
            Failed("bad", retry_in=50 * SECOND, beyond=Position(healthy[0], ZERO), poison=poison),
            Failed("bad", retry_in=40 * SECOND, beyond=Position(healthy[1], ZERO), poison=poison),
        ]
        await clock.advance(timedelta(minutes=10))
        assert owner.passes == [began, *healthy, began + 60 * SECOND]
        (status,) = scheduler.status()
        assert (status.poison, status.retry, status.last_error) == ((), None, None)


@pytest.mark.clause("RET-14")
async def test_a_signal_about_a_row_behind_those_set_apart_gets_a_pass_not_a_read(
    server: FakeServer, clock: FakeClock
) -> None:
    began = server.now
    owner = ScriptedOwner(server, due=[began])
    owner.results = [Failed("bad", retry_in=timedelta(hours=1), beyond=Position(began, ZERO))]
    async with running(server, owner):
        revived = began - timedelta(days=1)
        owner.due.append(revived)
        server.bus.deliver([Signal("owner")])
        await clock.rest()
        assert (revived, began) in owner.settled


async def test_a_signal_during_a_read_outlives_what_the_read_saw(
    server: FakeServer, clock: FakeClock
) -> None:
    due = server.now + timedelta(hours=1)
    owner = ScriptedOwner(server)
    async with running(server, owner):

        def write_after_the_snapshot() -> None:
            owner.during_read = None
            owner.due.append(due)
            server.bus.deliver([Signal("owner", due)])

        owner.during_read = write_after_the_snapshot
        server.bus.deliver([Signal("owner")])
        await clock.advance(timedelta(hours=1))
        assert owner.settled == [(due, due)]


async def test_a_deadline_lowered_before_its_statement_outlives_reads_that_do_not_see_the_row(
    server: FakeServer, clock: FakeClock
) -> None:
    """A hot step signals, then sends its one call; a read between the two sees nothing."""
    due = server.now + timedelta(minutes=4)
    owner = ScriptedOwner(server)
    async with running(server, owner) as scheduler:
        scheduler.lower("owner", due)
        server.bus.deliver([Signal("owner")])
        await clock.advance(25 * SECOND)
        assert len(owner.reads) == 2
        owner.due.append(due)
        await clock.advance(timedelta(minutes=10))
        assert owner.settled == [(due, due)]
