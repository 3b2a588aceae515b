"""One or two server processes over one database, and the club in which the writers of the matrix write."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from uuid import UUID

from tests.decisions.conftest import Door, open_door

from lastcall.clubs.queries import roles_of
from lastcall.clubs.staff import assign_role
from lastcall.db.bus import Hint
from lastcall.db.connect import Connection, connect
from lastcall.db.database import Database
from lastcall.deadlines.lane import OwnerStatus
from lastcall.deadlines.scheduler import Scheduler
from lastcall.deadlines.wake import WakeChannel
from lastcall.decisions.retention.due import refresh
from lastcall.decisions.retention.kinds import KINDS
from lastcall.decisions.retention.refreshes import RETENTION_REFRESH, retention_refresh_owner
from lastcall.decisions.retention.sweep import retention_owner
from lastcall.people.actor import Actor
from lastcall.people.service import add_person
from lastcall.testing.fake_clock import FakeClock
from lastcall.testing.proxy import CuttingProxy
from lastcall.testing.waiting import eventually

HALF_A_MINUTE = timedelta(seconds=31)  # within which a signal without a deadline is read
HINTS_ARE_OLD = timedelta(minutes=3)
IDLE = timedelta(minutes=10)
ROUNDS = 6
"""Half minutes after which even an unclear commit is known and everything read."""

_BARRIER = count()
_DOOM = """
create table lastcall_testing.doomed (is_only boolean);
create function lastcall_testing.doom() returns trigger language plpgsql as $$
begin
    if exists (select from lastcall_testing.doomed) then
        raise exception 'doomed';
    end if;
    return null;
end
$$;
create constraint trigger doom after insert on activity_log deferrable initially deferred
    for each row execute function lastcall_testing.doom();
create constraint trigger doom after insert on audit_log deferrable initially deferred
    for each row execute function lastcall_testing.doom();
"""
"""While it is armed, the COMMIT of whatever logged something is answered with an error."""
_UNDOOM = """
drop trigger doom on activity_log;
drop trigger doom on audit_log;
drop function lastcall_testing.doom();
drop table lastcall_testing.doomed;
"""


@dataclass
class Process:
    """What one server process is, as far as deadlines go."""

    db: Database
    clock: FakeClock = field(default_factory=FakeClock)

    def __post_init__(self) -> None:
        owners = [retention_owner(self.db, kind, self.clock) for kind in KINDS.values()]
        self.scheduler = Scheduler(
            self.db, [*owners, retention_refresh_owner(self.db, self.clock)], self.clock
        )

    def status(self) -> list[OwnerStatus]:
        return self.scheduler.status()

    async def rest(self) -> None:
        """Until no owner is at work."""
        await self.clock.rest()
        while tasks := [lane.task for lane in self.scheduler._lanes.values() if lane.task is not None]:
            await asyncio.wait(tasks)
            await self.clock.rest()

    async def advance(self, delay: timedelta) -> None:
        await self.clock.advance(delay)
        await self.rest()


@dataclass
class House:
    """The processes, the first of which writes, through a proxy that can cut it off; and the club."""

    processes: list[Process]
    proxy: CuttingProxy
    raw: Connection
    door: Door
    staff: Actor
    role: UUID

    @property
    def db(self) -> Database:
        return self.processes[0].db

    @property
    def owner(self) -> Actor:
        return self.door.owner

    @property
    def club_id(self) -> UUID:
        return self.door.club_id

    def at(self, db: Database, made: type[Door] = Door) -> Door:
        return made(db, self.owner, self.club_id)

    async def guest(self) -> Actor:
        """Somebody new."""
        person = await add_person(self.db, f"guest-{next(_BARRIER)}@example.org", "Guest")
        await self.raw.execute("update people set email_verified_at = lastcall_now() where id = $1", person)
        return Actor(person, "Guest", is_operator=False)

    async def another_club(self) -> Door:
        return await open_door(self.db, f"club-{next(_BARRIER)}")

    async def derive(self, door: Door, item: UUID) -> None:
        async with self.db.transaction() as tx:
            await refresh(tx, door.club_id, [item], kind=door.kind)

    async def doom(self, *, armed: bool) -> None:
        """From now on what is logged cannot be committed, or can."""
        await self.raw.execute(
            "insert into lastcall_testing.doomed values (true)"
            if armed
            else "delete from lastcall_testing.doomed"
        )

    async def clear(self) -> None:
        """Nothing waits any more, and every process has seen that."""
        await self.raw.execute(
            "delete from retention_refreshes; delete from join_requests; delete from approvals"
        )
        await self.begin()

    async def begin(self) -> None:
        """Every process has read what there is. What was said of it is old by then: a young hint outlives a read."""
        await self.everything_heard()
        for process in self.processes:
            await process.advance(HINTS_ARE_OLD)
            process.scheduler.reread()
        await self.settle()

    async def settle(self) -> None:
        """Until every process waits for what the rows say, and for nothing else."""
        for _ in range(ROUNDS):
            await self.everything_heard()
            for process in self.processes:
                await process.advance(HALF_A_MINUTE)
            if not await self.wrong():
                return
        raise AssertionError(f"after {ROUNDS} half minutes: {await self.wrong()}")

    async def everything_heard(self) -> None:
        """What the writer's process said has reached the others."""
        others = self.processes[1:]
        if not others:
            return
        hint = Hint(None, f"barrier-{next(_BARRIER)}")
        heard = [asyncio.Event() for _ in others]
        for process, event in zip(others, heard, strict=True):
            process.db.bus.subscribe(
                Hint,
                lambda one, event=event: event.set() if one == hint else None,  # type: ignore[misc]
            )
        self.db.bus.deliver([hint])
        async with asyncio.timeout(20):
            await asyncio.gather(*(event.wait() for event in heard))
        for process in others:
            process.db.bus._handlers[Hint].pop()

    async def wrong(self) -> list[str]:
        """What a process waits for though the rows say something else, or does not know yet."""
        expected: dict[str, datetime | None] = {RETENTION_REFRESH: None}
        for kind in KINDS.values():
            row = await self.raw.fetchrow(kind.order.next_deadline)
            assert row is not None
            expected[kind.owner] = row["deadline"]
        return [
            f"process {number}: {one.name} waits for {one.deadline}, not {expected[one.name]}; {one}"
            for number, process in enumerate(self.processes)
            for one in process.status()
            if one.deadline != expected[one.name] or one.dirty or one.unclear_commits or one.last_error
        ]

    async def idles(self) -> None:
        """Ten minutes pass in which no process sends anything."""
        sent = [process.db.statements for process in self.processes]
        for process in self.processes:
            await process.advance(IDLE)
        assert [process.db.statements for process in self.processes] == sent, (
            "it asked though nothing was due"
        )


@asynccontextmanager
async def open_house(url: str, processes: int) -> AsyncIterator[House]:
    """``processes`` of them, with the wake channel between them when there are several."""
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(CuttingProxy(url))
        raw = await connect(url)
        stack.push_async_callback(raw.close)
        await raw.execute(_DOOM)
        stack.push_async_callback(raw.execute, _UNDOOM)
        started: list[Process] = []
        for number in range(processes):
            db = await Database.open(url if number else proxy.url)
            stack.push_async_callback(db.close)
            process = Process(db)
            if processes > 1:
                channel = WakeChannel(db, process.clock)
                await channel.start()
                stack.push_async_callback(channel.stop)
                await eventually(lambda channel=channel: channel.is_up)  # type: ignore[misc]
            await process.scheduler.start()
            stack.push_async_callback(process.scheduler.stop)
            started.append(process)
        door = await open_door(started[0].db)
        staff = await add_person(door.db, "staff@example.org", "Staff")
        async with door.db.read() as tx:
            roles = {role.preset_key: role.id for role in await roles_of(tx, door.club_id)}
        await assign_role(door.db, door.owner, door.club_id, roles["event_staff"], staff)
        actor = Actor(staff, "Staff", is_operator=False)
        house = House(started, proxy, raw, door, actor, roles["event_staff"])
        await house.begin()
        yield house
