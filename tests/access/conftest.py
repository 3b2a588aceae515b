"""One database a module for what keeps to clubs of its own, and the people around a club's door."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from lastcall.access.invites import NewInvite, create_invite
from lastcall.clubs.queries import roles_of
from lastcall.clubs.service import add_club
from lastcall.clubs.staff import assign_role
from lastcall.db.database import Database
from lastcall.db.ids import encode_id, new_id
from lastcall.decisions.registration import register
from lastcall.people.actor import Actor
from lastcall.people.service import add_person
from lastcall.testing.staff import change_role


def fresh() -> str:
    """Part of a name that nobody has: this file is loaded twice, by pytest and by its importers."""
    return encode_id(new_id())[-12:]


async def person(db: Database, name: str, *, verified: bool = True) -> Actor:
    """Somebody new with an address of their own."""
    email = f"{name}-{fresh()}@example.org"
    person_id = await add_person(db, email, name.capitalize())
    if verified:
        await db.pool.execute("update people set email_verified_at = lastcall_now() where id = $1", person_id)
    return Actor(person_id, name.capitalize(), is_operator=False)


async def email_of(db: Database, who: Actor) -> str:
    email: str = await db.pool.fetchval("select email from people where id = $1", who.person_id)
    return email


@dataclass
class Door:
    """A club with its owner, a deputy who may hand on one role, a guest, and the preset roles by key."""

    db: Database
    club_id: UUID
    slug: str
    owner: Actor
    deputy: Actor
    guest: Actor
    roles: dict[str, UUID]

    async def invite(self, by: Actor | None = None, role: str = "event_staff", **more: Any) -> NewInvite:
        return await create_invite(self.db, by or self.owner, self.club_id, [self.roles[role]], **more)

    async def held_by(self, who: Actor) -> set[str]:
        rows = await self.db.pool.fetch(
            "select role_id from staff_assignments where club_id = $1 and person_id = $2",
            self.club_id,
            who.person_id,
        )
        return {key for key, role in self.roles.items() if role in {row["role_id"] for row in rows}}

    async def requests(self) -> list[Any]:
        return list(
            await self.db.pool.fetch(
                "select *, xmin::text as version from join_requests where club_id = $1 order by id",
                self.club_id,
            )
        )

    async def uses(self, invite: NewInvite) -> list[Any]:
        return list(
            await self.db.pool.fetch(
                "select * from invite_uses where club_id = $1 and invite_id = $2 order by number",
                self.club_id,
                invite.id,
            )
        )

    async def state(self, invite: NewInvite) -> Any:
        return await self.db.pool.fetchrow("select * from invites where id = $1", invite.id)


async def untouched(door: Door, invite: Any) -> bool:
    """Nothing came of it: the invite is open, nobody asked, nobody got anything."""
    row = await door.state(invite)
    return (
        (row["accepted_at"], row["uses"]) == (None, 0)
        and await door.uses(invite) == []
        and await door.requests() == []
        and await door.held_by(door.guest) == set()
        and not await door.db.pool.fetchval(
            "select exists (select from activity_log where club_id = $1 and action = 'invite.accepted')",
            door.club_id,
        )
    )


async def open_door(db: Database) -> Door:
    owner, deputy, guest = [await person(db, name) for name in ("owner", "deputy", "guest")]
    slug = f"club-{fresh()}"
    club_id = await add_club(db, None, f"The {slug}", slug, "UTC", owner.person_id)
    async with db.read() as tx:
        roles = {role.preset_key or "": role.id for role in await roles_of(tx, club_id)}
    await assign_role(db, owner, club_id, roles["admin"], deputy.person_id)
    await change_role(db, owner, club_id, roles["admin"], assignable=[roles["event_staff"]])
    return Door(db, club_id, slug, owner, deputy, guest, roles)


@pytest.fixture
async def door(db: Database) -> Door:
    register()
    return await open_door(db)
