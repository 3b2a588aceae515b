"""The wake channel between processes: two open databases stand for two of them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

import asyncpg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.db.bus import CacheDrop, Hint
from lastcall.db.connect import Connection
from lastcall.db.database import Database
from lastcall.deadlines.outbox import MOST, Message, Outbox, UnclearSignal, payloads, read_payload
from lastcall.deadlines.scheduler import Scheduler
from lastcall.deadlines.signals import Missed, Signal
from lastcall.deadlines.sweep import SweepOwner
from lastcall.deadlines.wake import WakeChannel, telling
from lastcall.testing.fake_clock import FakeClock
from lastcall.testing.proxy import Cut, CuttingProxy
from lastcall.testing.waiting import WITHIN, eventually
from tests.deadlines.due_rows import TABLE, DueRows

DUE = datetime(2031, 5, 6, 7, 8, 9, 123_456, tzinfo=UTC)
CLUB = UUID(int=9)
PIDS = "select pid from pg_stat_activity where query ilike 'listen%' and datname = current_database()"


@dataclass
class Process:
    """A process's database, its channel, and what its bus delivered."""

    db: Database
    channel: WakeChannel
    heard: list[object]
    unclear: list[tuple[object, int]]

    def heard_of(self, kind: type[object]) -> list[object]:
        return [message for message in self.heard if isinstance(message, kind)]


@asynccontextmanager
async def process(url: str, clock: Clock = SYSTEM_CLOCK) -> AsyncIterator[Process]:
    db = await Database.open(url)
    it = Process(db, WakeChannel(db, clock), [], [])
    db.bus.subscribe(object, it.heard.append)
    db.bus.subscribe_unclear(lambda messages, xid: it.unclear.extend((message, xid) for message in messages))
    await it.channel.start()
    await eventually(lambda: it.channel.is_up)
    try:
        yield it
    finally:
        await it.channel.stop()
        await db.close()


@pytest.mark.clause("SCH-07")
async def test_what_one_process_commits_the_other_hears_once(database_url: str) -> None:
    async with process(database_url) as one, process(database_url) as two:
        one.heard.clear()
        said = [
            Signal("rows", DUE),
            Signal("other"),
            CacheDrop("keys", "a"),
            Hint(CLUB, "scheduled"),
            Hint(None, "accounts"),
        ]
        async with one.db.transaction() as tx:
            for message in said:
                tx.publish(message)
        await eventually(lambda: len(two.heard) == 6)
        assert two.heard == [Missed(), *said]
        two.db.bus.deliver([Hint(CLUB, "last")])
        await eventually(lambda: one.heard[-1] == Hint(CLUB, "last"))
        assert one.heard == [*said, Hint(CLUB, "last")], "its own messages do not come back to it"


@pytest.mark.clause("ACC-09", "SCH-07")
async def test_what_is_rolled_back_no_process_hears(database_url: str) -> None:
    async with process(database_url) as one, process(database_url) as two:
        with pytest.raises(RuntimeError, match="no"):
            async with one.db.transaction() as tx:
                tx.publish(Signal("rows", DUE))
                raise RuntimeError("no")
        one.db.bus.deliver([Hint(CLUB, "later")])
        await eventually(lambda: two.heard_of(Hint))
        assert two.heard_of(Signal) == []


@pytest.mark.clause("SCH-07")
async def test_a_process_without_a_scheduler_wakes_the_one_that_has_it(database_url: str) -> None:
    async with process(database_url) as web, process(database_url) as worker:
        await worker.db.pool.execute(TABLE)
        rows = DueRows(worker.db)
        scheduler = Scheduler(worker.db, [SweepOwner("rows", rows)])
        await scheduler.start()
        await eventually(lambda: scheduler.status()[0].reads == 1)
        (row,) = await rows.add(
            await web.db.pool.fetchval("select lastcall_now() + interval '200 milliseconds'")
        )
        async with web.db.transaction() as tx:
            due = await tx.raw.fetchval("select due_at from due_rows")
            tx.publish(Signal("rows", due))
        await eventually(lambda: scheduler.status()[0].rows_done == 1)
        assert await rows.settled() == {row: 1}
        assert scheduler.status()[0].reads == 2, "a signal with its deadline is not read for"
        await scheduler.stop()


async def test_after_a_break_what_waited_is_told_and_what_was_missed_is_reread(database_url: str) -> None:
    clock = FakeClock()
    async with process(database_url, clock) as one, process(database_url) as two:
        two.heard.clear()
        pid = await own_listener(two)
        await two.db.pool.execute("select pg_terminate_backend($1)", pid)
        await eventually(lambda: not one.channel.is_up)
        one.db.bus.deliver(
            [Signal("rows", DUE), Signal("rows", DUE + timedelta(hours=1)), CacheDrop("keys", "a")]
        )
        assert len(one.heard_of(Missed)) == 1
        assert two.heard == []
        await clock.advance(timedelta(seconds=1))
        await eventually(lambda: len(two.heard) == 2)
        assert two.heard == [Signal("rows", DUE), CacheDrop("keys", "a")], "the lowest deadline says it all"
        assert len(one.heard_of(Missed)) == 2


async def test_a_message_whose_sending_broke_is_sent_again(database_url: str) -> None:
    clock = FakeClock()
    async with (
        CuttingProxy(database_url) as proxy,
        process(proxy.url, clock) as one,
        process(database_url) as two,
    ):
        proxy.arm(Cut.BEFORE, "pg_notify")
        one.db.bus.deliver([Signal("rows", DUE)])
        await eventually(lambda: not one.channel.is_up)
        await clock.advance(timedelta(seconds=1))
        heard = await eventually(lambda: two.heard_of(Signal))
        assert heard == [Signal("rows", DUE)]


async def own_listener(two: Process) -> int:
    """The pid of the first process's listener: the one that was there before the second's."""
    rows = await two.db.pool.fetch(PIDS + " order by backend_start")
    assert len(rows) == 2
    return int(rows[0]["pid"])


@pytest.mark.clause("ACC-09")
async def test_an_unclear_commit_is_watched_by_every_process(database_url: str) -> None:
    async with process(database_url) as one, process(database_url) as two:
        one.db.bus.unclear([Signal("rows", DUE), CacheDrop("keys", "a")], 4711)
        await eventually(lambda: two.unclear)
        assert two.unclear == [(Signal("rows"), 4711)]
        assert [message for message in two.heard if not isinstance(message, Missed)] == [
            Signal("rows", DUE),
            CacheDrop("keys", "a"),
        ]
        two.db.bus.deliver([Hint(CLUB, "last")])
        await eventually(lambda: one.heard_of(Hint))
        assert len(one.unclear) == 2, "it is not thrown back and forth"


async def test_once_a_day_everything_is_reread_and_otherwise_nothing_is_sent(database_url: str) -> None:
    clock = FakeClock()
    async with process(database_url, clock) as one:
        before = one.db.statements
        await clock.advance(timedelta(hours=23))
        assert len(one.heard_of(Missed)) == 1
        await clock.advance(timedelta(days=2))
        assert len(one.heard_of(Missed)) == 3
        assert one.db.statements == before


async def test_a_channel_that_cannot_connect_tries_on_and_stops_when_asked(database_url: str) -> None:
    clock = FakeClock()
    db = await Database.open(database_url)
    attempts: list[float] = []

    async def refuse() -> object:
        attempts.append(clock.boot())
        raise OSError("nobody there")

    db.connect = refuse  # type: ignore[method-assign, assignment]
    channel = WakeChannel(db, clock)
    await channel.start()
    await clock.advance(timedelta(minutes=2))
    gaps = [round(b - a) for a, b in itertools.pairwise(attempts)]
    assert gaps == [1, 2, 4, 8, 16, 30, 30]
    async with asyncio.timeout(WITHIN):
        await channel.stop()
    await db.close()


async def fail(*_: object, **__: object) -> None:
    raise asyncpg.InternalClientError("cannot switch to state 12; another operation (2) is in progress")


@pytest.mark.parametrize("at", ["connect", "add_listener", "execute"])
async def test_a_connection_whose_end_the_driver_has_not_yet_seen_does_not_end_the_channel(
    database_url: str, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock()
    async with process(database_url) as two:
        db = await Database.open(database_url)
        channel = WakeChannel(db, clock)
        with monkeypatch.context() as broken:
            broken.setattr(*(db, "connect") if at == "connect" else (Connection, at), fail)
            await channel.start()
            db.bus.deliver([Signal("rows", DUE)])
            await eventually(lambda: clock.sleeps == 2, message="it neither pauses nor goes on")
        assert not channel.is_up
        await clock.advance(timedelta(seconds=1))
        assert await eventually(lambda: two.heard_of(Signal)) == [Signal("rows", DUE)]
        await channel.stop()
        await db.close()


names = st.text(max_size=40)
messages = st.one_of(
    st.builds(Signal, names, st.none() | st.datetimes(timezones=st.just(UTC))),
    st.builds(UnclearSignal, names, st.integers(0, 2**63)),
    st.builds(CacheDrop, names, names),
    st.builds(Hint, st.uuids(), names),
    st.just(Missed()),
)


@settings(max_examples=30, deadline=None)
@given(st.lists(messages, max_size=150))
def test_what_is_packed_is_unpacked_and_fits_into_a_notify(said: list[Message]) -> None:
    packed = list(payloads(said))
    assert all(len(payload.encode()) < 8000 for payload in packed)
    assert [message for payload in packed for message in read_payload(payload)] == said


@pytest.mark.parametrize(
    "payload", ["", "{", "[1]", "[[]]", '[["signal", 3, null]]', '[["new kind", 1]]', "3"]
)
def test_what_is_not_understood_means_that_something_was_missed(payload: str) -> None:
    assert read_payload(payload) == [Missed()]


def test_a_long_outage_is_told_in_one_message() -> None:
    outbox = Outbox()
    outbox.add([UnclearSignal("rows", 5)])
    outbox.add(CacheDrop("keys", str(n)) for n in range(MOST + 10))
    kept = outbox.take()
    assert list(kept[:2]) == [Missed(), UnclearSignal("rows", 5)]
    assert len(kept) < 20
    assert outbox.take() == ()


async def test_what_a_command_of_the_host_commits_is_heard_by_those_who_listen(database_url: str) -> None:
    db = await Database.open(database_url)
    async with process(database_url) as server:
        server.heard.clear()
        said = {Signal("rows", DUE), Signal("other"), CacheDrop("keys", "a"), Hint(CLUB, "scheduled")}
        async with telling(db), db.transaction() as tx:
            for message in said:
                tx.publish(message)
        await eventually(lambda: set(server.heard) >= said)
        with pytest.raises(KeyError):
            async with telling(db):
                db.bus.deliver([Signal("late")])
                raise KeyError("the command failed after its first commit")
        await eventually(lambda: Signal("late") in server.heard)
    await db.close()
