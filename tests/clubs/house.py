"""A club with its people, in a database that the tests of one module share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from lastcall.clubs.permissions import Permission
from lastcall.clubs.queries import RoleView, read_role, roles_of
from lastcall.clubs.service import add_club
from lastcall.clubs.staff import assign_role
from lastcall.db.database import Database
from lastcall.db.ids import encode_id, new_id
from lastcall.people.actor import Actor
from lastcall.people.service import add_person
from lastcall.testing.locks import wait_until_blocked
from lastcall.testing.staff import change_role


def fresh() -> str:
    """Part of a name that nobody has."""
    return encode_id(new_id())[-12:]


async def person(db: Database, name: str, *, operator: bool = False) -> Actor:
    """Somebody new, who has just signed in."""
    person_id = await add_person(db, f"{name}-{fresh()}@example.org", name.capitalize(), operator=operator)
    return Actor(person_id, name.capitalize(), is_operator=operator, is_recent=True)


@dataclass
class House:
    """A club; a deputy who holds the admin role and may hand on the others; a guest without a role."""

    db: Database
    club_id: UUID
    slug: str
    owner: Actor
    deputy: Actor
    guest: Actor
    roles: dict[str, UUID]

    async def role(self, key: str) -> RoleView:
        async with self.db.read() as tx:
            return await read_role(tx, self.club_id, self.roles[key])

    async def run(self, statement: str, *arguments: object) -> Any:
        """One value, with the club's id as the first argument."""
        return await self.db.pool.fetchval(statement, self.club_id, *arguments)

    async def gate(self) -> int:
        return int(await self.run("select generation from club_gates where club_id = $1"))

    async def actions(self) -> list[str]:
        rows = await self.db.pool.fetch(
            "select action from activity_log where club_id = $1 order by id", self.club_id
        )
        return [row["action"] for row in rows]

    async def holds(self, who: Actor) -> set[str]:
        rows = await self.db.pool.fetch(
            "select role_id from staff_assignments where club_id = $1 and person_id = $2",
            self.club_id,
            who.person_id,
        )
        held = {row["role_id"] for row in rows}
        return {key for key, role_id in self.roles.items() if role_id in held}


async def open_house(db: Database) -> House:
    owner, deputy, guest = [await person(db, name) for name in ("owner", "deputy", "guest")]
    slug = f"club-{fresh()}"
    club_id = await add_club(db, None, f"The {slug}", slug, "UTC", owner.person_id)
    async with db.read() as tx:
        roles = {role.preset_key or "": role.id for role in await roles_of(tx, club_id)}
    await assign_role(db, owner, club_id, roles["admin"], deputy.person_id)
    others = [roles["moderator"], roles["event_staff"]]
    await change_role(db, owner, club_id, roles["admin"], assignable=others)
    return House(db, club_id, slug, owner, deputy, guest, roles)


def stale(actor: Actor) -> Actor:
    """The same person, a while after they signed in."""
    return replace(actor, is_recent=False)


def without(*permissions: Permission) -> frozenset[Permission]:
    return frozenset(Permission) - set(permissions)


async def contend(
    db: Database,
    first: Callable[[], Awaitable[Any]],
    second: Callable[[], Awaitable[Any]],
    query: str = "",
) -> Any:
    """``first`` is done and not yet committed when ``second`` begins; ``second`` is seen to wait for it. Answers
    what ``second`` answered, or the error it raised."""
    async with db.transaction() as tx:
        await first()
        task = asyncio.ensure_future(second())
        try:
            await wait_until_blocked(db, query, by=tx.raw.get_server_pid())
        except AssertionError:
            outcome = (await asyncio.gather(task, return_exceptions=True))[0]
            raise AssertionError(f"did not wait; it came to {outcome!r}") from None
    return (await asyncio.gather(task, return_exceptions=True))[0]


async def overtake(
    db: Database, first: Callable[[], Awaitable[Any]], second: Callable[[], Awaitable[Any]]
) -> Any:
    """For twins: ``second`` comes to its end, committed, while ``first`` is done and not yet committed."""
    async with db.transaction():
        await first()
        return await asyncio.wait_for(asyncio.ensure_future(second()), 5)
