"""A club with its owner and a door at which people wait."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from uuid import UUID

import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

import lastcall.decisions
from lastcall.access import listeners
from lastcall.access.invites import InviteKind, create_invite
from lastcall.access.requests import AgentSubject, record_join_request
from lastcall.clubs.service import add_club
from lastcall.db.database import Database
from lastcall.decisions.registration import register
from lastcall.people.actor import Actor
from lastcall.people.service import add_person

NINETY_DAYS = timedelta(days=90)
SQL = Path(lastcall.decisions.__file__).parent / "sql"


@dataclass
class Door:
    """Makes join requests in one club."""

    db: Database
    owner: Actor
    club_id: UUID
    _names: Iterator[int] = field(default_factory=count)

    async def invite(self) -> UUID:
        """An invite that nobody used."""
        return await agent_invite(self.db, self.owner, self.club_id)

    async def waits(self, activity_at: datetime, invite_id: UUID | None = None) -> UUID:
        """A pending request whose last activity was then."""
        invite_id = invite_id or await self.invite()
        subject = AgentSubject(f"agent {next(self._names)}")
        return await record_join_request(self.db, self.club_id, invite_id, subject, activity_at=activity_at)

    async def waits_since(self, age: timedelta) -> UUID:
        """A pending request whose last activity was so long ago, by the database's clock."""
        now: datetime = await self.db.pool.fetchval("select lastcall_now()")
        return await self.waits(now - age)

    async def overdue(self, by: timedelta = timedelta(minutes=1)) -> UUID:
        """A pending request that was due so long ago."""
        return await self.waits_since(NINETY_DAYS + by)

    async def due_at(self, request_id: UUID) -> datetime | None:
        """What is scheduled for it."""
        due: datetime | None = await self.db.pool.fetchval(
            "select archive_due_at from join_requests where club_id = $1 and id = $2",
            self.club_id,
            request_id,
        )
        return due

    async def archived_at(self, request_id: UUID) -> datetime | None:
        """When it was archived, if it was."""
        archived: datetime | None = await self.db.pool.fetchval(
            "select archived_at from retention where club_id = $1 and join_request_id = $2",
            self.club_id,
            request_id,
        )
        return archived

    async def archived(self) -> int:
        """How many are archived in this club."""
        number: int = await self.db.pool.fetchval(
            "select count(*) from retention where club_id = $1 and archived_at is not null", self.club_id
        )
        return number

    async def break_row(self, *request_ids: UUID) -> None:
        """From now on the archive of these fails in the database, as a damaged row's would."""
        ids = ", ".join(f"'{request_id}'" for request_id in request_ids)
        await self.db.pool.execute(
            f"alter table retention add constraint broken check (join_request_id not in ({ids}))"
        )

    async def repair_rows(self) -> None:
        """Undo ``break_row``."""
        await self.db.pool.execute("alter table retention drop constraint broken")


async def agent_invite(database: Database, owner: Actor, club_id: UUID) -> UUID:
    """An invite for a program, which gives no roles."""
    return (await create_invite(database, owner, club_id, (), kind=InviteKind.AGENT)).id


async def open_door(database: Database, slug: str = "attic") -> Door:
    """A new club with an owner of its own."""
    owner = Actor(await add_person(database, f"{slug}@example.org", "Owner"), "Owner", is_operator=False)
    return Door(database, owner, await add_club(database, None, "Club", slug, "UTC", owner.person_id))


@pytest.fixture(autouse=True)
def logs() -> Iterator[list[EventDict]]:
    """What was logged, instead of on the terminal: rendering a hundred tracebacks takes minutes."""
    with capture_logs() as captured:
        yield captured


@pytest.fixture
async def door(database: Database) -> Door:
    register()
    return await open_door(database)


@pytest.fixture
def unregistered() -> Iterator[None]:
    """Without the listener that derives the deadline, for a twin."""
    kept, coming = list(listeners._listeners), list(listeners._coming)
    listeners._listeners.clear()
    listeners._coming.clear()
    yield
    listeners._listeners.extend(kept)
    listeners._coming.extend(coming)


async def replace_in_routine(database: Database, file: str, old: str, new: str) -> None:
    """Take a guard out of a routine in this test's database."""
    sql = (SQL / file).read_text(encoding="utf-8")
    assert sql.count(old) == 1, f"{file} no longer holds {old!r} once"
    await database.pool.execute(sql.replace(old, new))
