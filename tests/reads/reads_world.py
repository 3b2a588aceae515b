"""A club whose staff have things read, and the worker that reads them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from tests.operations.operations_world import World, make_world, user

from lastcall.clubs.permissions import Permission
from lastcall.connections.worker import Worker
from lastcall.db.connect import Connection
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.people.actor import Actor
from lastcall.protocol.messages import OwnMemberEvidence
from lastcall.reads.asking import request_read
from lastcall.reads.pages import Page
from lastcall.reads.queries import Read, read_of
from lastcall.reads.worker import ReadHeld, ReadSteps
from lastcall.testing.clock import TestClock
from lastcall.testing.locks import wait_until_blocked

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
TICK = timedelta(microseconds=1)


def ban_row(number: int) -> dict[str, Any]:
    return {"userId": user(number), "displayName": f"Guest {number}", "bannedAt": None}


@dataclass
class Reading:
    """``moderator`` and ``second`` hold every permission by one role; ``helper`` has a role that allows nothing."""

    world: World
    steps: ReadSteps
    second: Actor = field(default_factory=lambda: Actor(new_id(), "Second", is_operator=False))
    helper: Actor = field(default_factory=lambda: Actor(new_id(), "Helper", is_operator=False))

    @property
    def db(self) -> Database:
        return self.world.db

    @property
    def clock(self) -> TestClock:
        return self.world.clock

    @property
    def moderator(self) -> Actor:
        return self.world.moderator

    async def run(self, statement: str, *arguments: object) -> Any:
        return await self.world.run(statement, *arguments)

    async def ask(
        self, kind: str = "bans", params: dict[str, Any] | None = None, actor: Actor | None = None
    ) -> Read:
        return await request_read(self.db, actor or self.moderator, self.world.club_id, kind, params or {})

    async def look(self, read_id: UUID, actor: Actor | None = None) -> Read:
        async with self.db.read() as tx:
            return await read_of(tx, actor or self.moderator, self.world.club_id, read_id)

    async def claim(self, worker: Worker | None = None, token: int | None = None) -> ReadHeld | None:
        lease = replace(self.world.lease, fencing_token=token or self.world.token)
        claimed = await self.steps.claim(worker or self.world.worker, lease)
        if claimed is None:
            return None
        return ReadHeld(
            lease.club_id,
            lease.connection_id,
            lease.epoch,
            lease.fencing_token,
            claimed.read_id,
            claimed.nonce,
        )

    async def claimed(self, *asked: Any, **how: Any) -> ReadHeld:
        """One read, asked for and claimed."""
        read = await self.ask(*asked, **how)
        held = await self.claim()
        assert held is not None
        assert held.read_id == read.id
        return held

    async def complete(
        self,
        held: ReadHeld,
        *items: dict[str, Any],
        next_offset: int | None = None,
        total: int | None = None,
        evidence: OwnMemberEvidence | None = None,
        age: timedelta = timedelta(0),
        worker: Worker | None = None,
    ) -> bool:
        return await self.steps.complete(
            worker or self.world.worker,
            held,
            Page(items, next_offset, total),
            evidence or self.world.evidence(),
            age=age,
        )

    async def answered(self, kind: str = "bans", *items: dict[str, Any], **params: Any) -> Read:
        """One read that was asked for and answered just now."""
        held = await self.claimed(kind, params)
        assert await self.complete(held, *items)
        # On the way the page grew older by a moment, on a clock that no test stops.
        await self.run("update provider_reads set observed_at = lastcall_now() where id = $1", held.read_id)
        return await self.look(held.read_id)

    async def take_over(self) -> Worker:
        """Another process of the account holds the lease from now on."""
        other = replace(self.world.worker, worker_id=uuid4())
        self.world.token += 1
        await self.run(
            "update leases set worker_id = $1, fencing_token = $2", other.worker_id, self.world.token
        )
        self.world.worker_id = other.worker_id
        return other


async def make_reading(database: Database, test_clock: TestClock) -> Reading:
    world = await make_world(database, test_clock)
    reading = Reading(world, ReadSteps(database))
    await world.run("update staff_roles set permissions = $1", [one.value for one in Permission])
    await world.run("update connections set features = '{membership_management,posts,instances}'")
    nothing = await world.run(
        "insert into staff_roles (club_id, id, name, permissions) values ($1, $2, 'Helper', '{}') returning id",
        world.club_id,
        new_id(),
    )
    for actor, role_id in ((reading.second, world.role_id), (reading.helper, nothing)):
        await world.run(
            "insert into people (id, email, display_name) values ($1, $2, $3)",
            actor.person_id,
            f"{actor.display_name}@example.test",
            actor.display_name,
        )
        await world.run(
            "insert into staff_assignments (club_id, id, role_id, person_id) values ($1, $2, $3, $4)",
            world.club_id,
            new_id(),
            role_id,
            actor.person_id,
        )
    return reading


@asynccontextmanager
async def another(reading: Reading) -> AsyncIterator[Connection]:
    """A second session, with a transaction open."""
    connection = await reading.db.connect()
    transaction = connection.transaction()
    await transaction.start()
    try:
        yield connection
        await transaction.commit()
    finally:
        await connection.close()


async def waiting(reading: Reading, work: Awaitable[Any], holder: Connection) -> asyncio.Future[Any]:
    """``work``, started, once the server says that it waits for what ``holder`` holds."""
    task = asyncio.ensure_future(work)
    await wait_until_blocked(reading.db, "", by=holder.get_server_pid())
    return task


async def without(reading: Reading, function: str, guard: str, instead: str) -> None:
    """Take a named guard out of one of the room's functions."""
    source: str = await reading.run("select pg_get_functiondef($1::regproc)", function)
    assert guard in source
    await reading.run(source.replace(guard, instead))
