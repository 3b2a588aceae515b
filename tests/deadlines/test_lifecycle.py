"""Drain and stop, turns, clocks that are set, unclear commits: the scheduler over its life, on a moved clock."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import UUID

import pytest

from lastcall.clock import GLANCE
from lastcall.deadlines.owner import Done, Failed, More
from lastcall.deadlines.signals import Missed, Signal
from lastcall.testing.fake_clock import FakeClock
from tests.deadlines.scripted import FakeServer, ScriptedOwner, running

SECOND = timedelta(seconds=1)
MICROSECOND = timedelta(microseconds=1)
ZERO = UUID(int=0)


@pytest.mark.clause("SCH-04")
async def test_drain_keeps_signals_deadlines_and_retries_and_asks_nothing(
    server: FakeServer, clock: FakeClock
) -> None:
    due = server.now + SECOND
    failing = ScriptedOwner(server, "failing", [due])
    failing.results = [Failed("no")]
    quiet = ScriptedOwner(server, "quiet")
    async with running(server, failing, quiet) as scheduler:
        await clock.advance(SECOND)
        scheduler.drain()
        new = server.now + SECOND
        quiet.due.append(new)
        server.bus.deliver([Signal("quiet", new), Signal("failing")])
        counts = (len(failing.reads), len(failing.passes), len(quiet.reads))
        sleeps = clock.sleeps
        await clock.advance(timedelta(hours=3))
        assert (len(failing.reads), len(failing.passes), len(quiet.reads)) == counts
        assert quiet.passes == []
        assert scheduler.next_wake() == server.now
        assert clock.sleeps - sleeps <= 5, "it sleeps, and does not spin"
        scheduler.undrain()
        await clock.rest()
        assert quiet.settled == [(new, server.now)]
        assert failing.settled == [(due, server.now)]


@pytest.mark.clause("SCH-04")
async def test_drain_in_the_middle_lets_the_pass_end_and_goes_on_there_afterwards(
    server: FakeServer, clock: FakeClock
) -> None:
    owner = ScriptedOwner(server, due=[server.now])
    owner.hold = asyncio.Event()
    owner.results = [More(100), More(100)]
    async with running(server, owner) as scheduler:
        scheduler.drain()
        owner.hold.set()
        await clock.advance(timedelta(hours=1))
        assert (len(owner.passes), len(owner.reads)) == (1, 1)
        scheduler.undrain()
        await clock.rest()
        assert (len(owner.passes), len(owner.reads)) == (3, 2)
        assert scheduler.status()[0].rows_done == 201


@pytest.mark.clause("SCH-04")
async def test_drain_during_the_last_pass_keeps_the_read_after_it(
    server: FakeServer, clock: FakeClock
) -> None:
    owner = ScriptedOwner(server, due=[server.now])
    owner.hold = asyncio.Event()
    async with running(server, owner) as scheduler:
        scheduler.drain()
        owner.due.append(server.now + SECOND)
        owner.hold.set()
        await clock.advance(timedelta(hours=1))
        assert (len(owner.settled), len(owner.reads)) == (1, 1)
        scheduler.undrain()
        await clock.rest()
        assert len(owner.settled) == 2


@pytest.mark.clause("SCH-05")
async def test_stop_waits_for_the_pass_in_hand_and_begins_no_other(
    server: FakeServer, clock: FakeClock
) -> None:
    owner = ScriptedOwner(server, due=[server.now])
    owner.hold = asyncio.Event()
    owner.results = [More(1), Done(1)]
    async with running(server, owner) as scheduler:
        stopping = asyncio.create_task(scheduler.stop())
        await clock.rest()
        assert not stopping.done()
        owner.hold.set()
        await stopping
        await clock.advance(timedelta(days=1))
        assert (len(owner.passes), len(owner.reads)) == (1, 1)


async def test_an_owner_that_hangs_holds_up_no_other(server: FakeServer, clock: FakeClock) -> None:
    slow = ScriptedOwner(server, "slow", [server.now])
    slow.hold = asyncio.Event()
    brisk = ScriptedOwner(server, "brisk", [server.now + n * SECOND for n in range(1, 4)])
    async with running(server, slow, brisk):
        await clock.advance(timedelta(minutes=1))
        assert [late - due for due, late in brisk.settled] == [timedelta(0)] * 3
        assert len(slow.passes) == 1, "one pass an owner at a time"
        slow.hold.set()


async def test_owners_with_a_backlog_take_turns(server: FakeServer, clock: FakeClock) -> None:
    order: list[str] = []

    class Busy(ScriptedOwner):
        async def run_pass(self, stop: object) -> More | Done:
            order.append(self.name)
            await asyncio.sleep(0)
            if order.count(self.name) < 20:
                return More(100)
            self.due = []
            return Done(100)

    owners = [Busy(server, f"owner {n}", [server.now]) for n in range(8)]
    async with running(server, *owners):
        await clock.rest()
        await clock.rest()
        await clock.advance(SECOND)
    assert len(order) == 8 * 20
    for upto in range(len(order) // 2):
        counts = [order[:upto].count(owner.name) for owner in owners]
        assert max(counts) - min(counts) <= 2, "nobody gets far ahead of anybody"


async def test_a_deadline_that_its_passes_do_not_find_waits_for_the_retry(
    server: FakeServer, clock: FakeClock
) -> None:
    owner = ScriptedOwner(server, due=[server.now])
    owner.results = [Done()] * 100
    async with running(server, owner):
        assert len(owner.passes) <= 3
        await clock.advance(29 * SECOND)
        assert len(owner.passes) <= 3
        await clock.advance(SECOND)
        assert len(owner.passes) > 3


@pytest.mark.clause("SCH-06")
@pytest.mark.parametrize("ahead", [timedelta(hours=-7), timedelta(milliseconds=-3), timedelta(days=2)])
async def test_the_database_clock_decides_however_far_it_is_from_ours(
    clock: FakeClock, ahead: timedelta
) -> None:
    server = FakeServer(clock, ahead)
    due = server.now + timedelta(minutes=30)
    owner = ScriptedOwner(server, due=[due])
    async with running(server, owner):
        await clock.advance(timedelta(minutes=29))
        assert owner.passes == []
        await clock.advance(timedelta(minutes=1))
        assert owner.settled == [(due, due)]


@pytest.mark.clause("SCH-06")
@pytest.mark.parametrize("jump", [timedelta(hours=-1), timedelta(hours=1), timedelta(days=-3)])
async def test_a_clock_that_is_set_causes_one_read_and_the_deadline_holds(
    server: FakeServer, clock: FakeClock, jump: timedelta
) -> None:
    owner = ScriptedOwner(server, "first", [server.now + timedelta(hours=5)])
    other = ScriptedOwner(server, "second")
    due = owner.due[0]
    async with running(server, owner, other):
        await clock.advance(timedelta(minutes=10))
        clock.set_wall(clock.wall() + jump)
        await clock.advance(timedelta(hours=1))
        assert (len(owner.reads), len(other.reads)) == (2, 1)
        await clock.advance(due - server.now - MICROSECOND)
        assert owner.passes == []
        await clock.advance(MICROSECOND)
        assert owner.settled == [(due, due)]
        assert len(owner.reads) == 3


@pytest.mark.clause("SCH-06")
async def test_what_came_due_while_the_host_slept_runs_when_it_wakes(
    server: FakeServer, clock: FakeClock
) -> None:
    due = server.now + timedelta(days=3)
    owner = ScriptedOwner(server, due=[due])
    async with running(server, owner):
        await clock.advance(timedelta(minutes=10))
        clock.suspend(timedelta(days=4))
        woke, reads = server.now, len(owner.reads)
        await clock.advance(timedelta(hours=1))
        ((_, settled),) = owner.settled
        assert woke <= settled <= woke + GLANCE
        assert len(owner.reads) == reads + 1, "looking at the clock is no statement"


@pytest.mark.clause("ACC-09")
@pytest.mark.parametrize("outcome", ["committed", "aborted", "forgotten"])
async def test_after_an_unclear_commit_the_owner_is_reread_until_one_read_follows_its_end(
    server: FakeServer, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, outcome: str
) -> None:
    status = "in progress"

    async def xid_status(_: object, xid: int) -> str:
        assert xid == 77
        return status

    monkeypatch.setattr("lastcall.deadlines.scheduler.xid_status", xid_status)
    owner = ScriptedOwner(server)
    async with running(server, owner) as scheduler:
        began = server.now
        server.bus.unclear([Signal("owner", began + timedelta(days=90)), object(), Signal("stranger")], 77)
        assert scheduler.next_wake() == began, "it is read at once"
        await clock.rest()
        assert scheduler.status()[0].deadline == began + timedelta(days=90), "possible, so it is waited for"
        await clock.advance(100 * SECOND)
        assert owner.reads[1:] == [began + n * 30 * SECOND for n in range(4)]
        assert scheduler.status()[0].unclear_commits == 1
        status = outcome
        if outcome == "committed":
            owner.due.append(began + 110 * SECOND)
        await clock.advance(timedelta(hours=1))
        assert owner.reads[5] == began + 120 * SECOND
        assert len(owner.settled) == (outcome == "committed")
        reads = len(owner.reads)
        await clock.advance(timedelta(days=2))
        assert len(owner.reads) == reads
        assert scheduler.status()[0].unclear_commits == 0


@pytest.mark.clause("ACC-09")
async def test_a_commit_that_ends_during_the_read_is_read_once_more(
    server: FakeServer, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = "in progress"

    async def xid_status(*_: object) -> str:
        return status

    monkeypatch.setattr("lastcall.deadlines.scheduler.xid_status", xid_status)
    owner = ScriptedOwner(server)
    due = server.now + timedelta(days=90)

    def commit_after_the_snapshot() -> None:
        nonlocal status
        owner.during_read = None
        status = "committed"
        owner.due.append(due)

    async with running(server, owner) as scheduler:
        owner.during_read = commit_after_the_snapshot
        server.bus.unclear([Signal("owner")], 77)
        await clock.advance(31 * SECOND)
        assert len(owner.reads) == 3
        assert scheduler.status()[0].deadline == due


async def test_lost_messages_make_every_owner_read_again(server: FakeServer, clock: FakeClock) -> None:
    owners = [ScriptedOwner(server, f"owner {n}") for n in range(3)]
    async with running(server, *owners):
        await clock.advance(timedelta(minutes=1))
        server.bus.deliver([Missed()])
        await clock.rest()
        assert [len(owner.reads) for owner in owners] == [2, 2, 2]


@pytest.mark.clause("SCH-09")
async def test_next_wake_is_the_earliest_of_deadlines_and_retries(
    server: FakeServer, clock: FakeClock
) -> None:
    due = server.now + timedelta(hours=2)
    one, two = ScriptedOwner(server, "one", [due]), ScriptedOwner(server, "two", [due + SECOND])
    async with running(server, one, two) as scheduler:
        assert scheduler.next_wake() == due
        one.results = [Failed("no")]
        await clock.advance(timedelta(hours=2))
        assert scheduler.next_wake() == due + SECOND
        await clock.advance(SECOND)
        assert scheduler.next_wake() == due + 30 * SECOND


async def test_two_owners_of_one_name_are_refused(server: FakeServer) -> None:
    with pytest.raises(ValueError, match="same name"):
        async with running(server, ScriptedOwner(server), ScriptedOwner(server)):
            pass
