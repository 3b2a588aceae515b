"""A club with its owner and a door at which people wait."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import ClassVar
from uuid import UUID

import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

import lastcall.decisions
from lastcall.access import listeners
from lastcall.access.invites import InviteKind, create_invite
from lastcall.access.requests import (
    Activity,
    AgentSubject,
    Decided,
    RequestStatus,
    record_join_request,
    write_join_request_change,
)
from lastcall.clubs.permissions import Permission
from lastcall.clubs.service import add_club
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.decisions.registration import register
from lastcall.decisions.retention.due import announce, refresh
from lastcall.decisions.retention.kind import Kind
from lastcall.decisions.retention.kinds.approval import APPROVAL
from lastcall.decisions.retention.kinds.join_request import JOIN_REQUEST
from lastcall.people.actor import Actor
from lastcall.people.service import add_person

NINETY_DAYS = timedelta(days=90)
SQL = Path(lastcall.decisions.__file__).parent / "sql"


MANY = """
with invited as (
    insert into invites (club_id, id, token_hash, invited_by, expires_at)
    select $1, gen_random_uuid(), sha256(uuid_send(gen_random_uuid())), $2, lastcall_now()
    from generate_series(1, 40000) n
    returning id
), asked as (
    insert into join_requests (club_id, id, invite_id, subject_kind, agent_name, status, activity_at, decided_at)
    select $1, id, id, 'agent', 'agent', $3, lastcall_now() - interval '200 days',
        case when $3 <> 'pending_approval' then lastcall_now() end
    from invited
    returning id
)
insert into retention (
    club_id, id, join_request_id, archived_at, archived_reason, archived_by_kind, archive_version,
    source_activity_at
)
select $1, id, id, lastcall_now(), 'idle', 'system', 1, lastcall_now() from asked where $3 = 'pending_approval'
"""


AN_APPROVAL = """
    insert into approvals (club_id, id, type, title, body, requested_by_kind, requested_by_person_id, activity_at)
    values ($1, $2, 'question', 'May I?', '', 'person', $3, $4)
"""
MANY_APPROVALS = """
with asked as (
    insert into approvals (club_id, id, type, title, body, requested_by_kind, requested_by_person_id, status,
        activity_at, decided_at, decided_by)
    select $1, gen_random_uuid(), 'question', 'May I?', '', 'person', $2, $3, lastcall_now() - interval '200 days',
        case when $3 <> 'pending' then lastcall_now() end, case when $3 <> 'pending' then $2::uuid end
    from generate_series(1, 40000) n
    returning id
)
insert into retention (
    club_id, id, approval_id, archived_at, archived_reason, archived_by_kind, archive_version, source_activity_at
)
select $1, id, id, lastcall_now(), 'idle', 'system', 1, lastcall_now() from asked where $3 = 'pending'
"""


@dataclass
class Door:
    """Makes items of one kind in one club: here join requests."""

    db: Database
    owner: Actor
    club_id: UUID
    _names: Iterator[int] = field(default_factory=count)

    kind: ClassVar[Kind] = JOIN_REQUEST
    sees: ClassVar[Permission] = Permission.DECIDE_ACCESS
    many: ClassVar[str] = MANY

    async def invite(self) -> UUID:
        """An invite that nobody used."""
        return await agent_invite(self.db, self.owner, self.club_id)

    async def prepare(self) -> UUID | None:
        """What ``waits`` needs beforehand, so that it is one transaction itself."""
        return await self.invite()

    async def decide(self, item_id: UUID, status: str = "rejected") -> None:
        """Somebody decides it."""
        await self.change(
            item_id, Decided(RequestStatus.APPROVED if status == "approved" else RequestStatus.REJECTED)
        )

    async def move(self, item_id: UUID) -> None:
        """Whoever asks does something."""
        await self.change(item_id, Activity())

    async def change(self, item_id: UUID, change: Decided | Activity) -> None:
        """One change of a join request."""
        await write_join_request_change(self.db, self.owner, self.club_id, item_id, change)

    async def waits(self, activity_at: datetime, invite_id: UUID | None = None) -> UUID:
        """A pending item whose last activity was then."""
        invite_id = invite_id or await self.invite()
        subject = AgentSubject(f"agent {next(self._names)}")
        return await record_join_request(self.db, self.club_id, invite_id, subject, activity_at=activity_at)

    async def waits_since(self, age: timedelta) -> UUID:
        """A pending item whose last activity was so long ago, by the database's clock."""
        now: datetime = await self.db.pool.fetchval("select lastcall_now()")
        return await self.waits(now - age)

    async def overdue(self, by: timedelta = timedelta(minutes=1)) -> UUID:
        """A pending item that was due so long ago."""
        return await self.waits_since(NINETY_DAYS + by)

    async def due_at(self, item_id: UUID) -> datetime | None:
        """What is scheduled for it."""
        due: datetime | None = await self.db.pool.fetchval(
            f"select archive_due_at from {self.kind.table.name} where club_id = $1 and id = $2",
            self.club_id,
            item_id,
        )
        return due

    async def archived_at(self, item_id: UUID) -> datetime | None:
        """When it was archived, if it was."""
        archived: datetime | None = await self.db.pool.fetchval(
            "select archived_at from retention where club_id = $1 and id = $2", self.club_id, item_id
        )
        return archived

    async def archived(self) -> int:
        """How many are archived in this club."""
        number: int = await self.db.pool.fetchval(
            "select count(*) from retention where club_id = $1 and archived_at is not null", self.club_id
        )
        return number

    async def past(self, status: str) -> None:
        """Forty thousand items that are not due: decided ones, or pending ones that are archived."""
        await self.db.pool.execute(self.many, self.club_id, self.owner.person_id, status)

    async def break_row(self, *item_ids: UUID) -> None:
        """From now on the archive of these fails in the database, as a damaged row's would."""
        ids = ", ".join(f"'{item_id}'" for item_id in item_ids)
        await self.db.pool.execute(
            f"alter table retention add constraint broken check (id not in ({ids})) not valid"
        )

    async def repair_rows(self) -> None:
        """Undo ``break_row``."""
        await self.db.pool.execute("alter table retention drop constraint broken")


@dataclass
class Desk(Door):
    """Makes approvals that a person asked for."""

    kind: ClassVar[Kind] = APPROVAL
    sees: ClassVar[Permission] = Permission.DECIDE_APPROVALS
    many: ClassVar[str] = MANY_APPROVALS

    async def prepare(self) -> UUID | None:
        return None

    async def waits(self, activity_at: datetime, invite_id: UUID | None = None) -> UUID:
        assert invite_id is None, "nobody is invited to a desk"
        item_id = new_id()
        async with self.db.transaction() as tx:
            await announce(tx, self.club_id, activity_at, kind=APPROVAL)
            await tx.raw.execute(AN_APPROVAL, self.club_id, item_id, self.owner.person_id, activity_at)
            await refresh(tx, self.club_id, [item_id], kind=APPROVAL)
        return item_id

    async def decide(self, item_id: UUID, status: str = "rejected") -> None:
        await self._write(
            item_id,
            "status = $3, decided_at = lastcall_now(), decided_by = $4",
            status,
            self.owner.person_id,
        )

    async def move(self, item_id: UUID) -> None:
        await self._write(item_id, "activity_at = lastcall_now()")

    async def _write(self, item_id: UUID, what: str, *values: object) -> None:
        async with self.db.transaction() as tx:
            await tx.raw.execute(
                f"update approvals set {what} where club_id = $1 and id = $2", self.club_id, item_id, *values
            )
            await refresh(tx, self.club_id, [item_id], kind=APPROVAL)


async def agent_invite(database: Database, owner: Actor, club_id: UUID) -> UUID:
    """An invite for a program, which gives no roles."""
    return (await create_invite(database, owner, club_id, (), kind=InviteKind.AGENT)).id


DOORS: dict[str, type[Door]] = {JOIN_REQUEST.name: Door, APPROVAL.name: Desk}
"""By the name of their kind: what holds for one kind holds for all (RET-15)."""


async def open_door(database: Database, slug: str = "attic", made: type[Door] = Door) -> Door:
    """A new club with an owner of its own."""
    owner = Actor(await add_person(database, f"{slug}@example.org", "Owner"), "Owner", is_operator=False)
    return made(database, owner, await add_club(database, None, "Club", slug, "UTC", owner.person_id))


@pytest.fixture(autouse=True)
def logs() -> Iterator[list[EventDict]]:
    """What was logged, instead of on the terminal: rendering a hundred tracebacks takes minutes."""
    with capture_logs() as captured:
        yield captured


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A module that says ``EVERY_KIND`` is tried with items of each kind in turn."""
    if "door" in metafunc.fixturenames and getattr(metafunc.module, "EVERY_KIND", False):
        metafunc.parametrize("door", DOORS.values(), ids=DOORS, indirect=True)


@pytest.fixture
async def door(database: Database, request: pytest.FixtureRequest) -> Door:
    """Where items are made: join requests, where the module does not say otherwise."""
    register()
    return await open_door(database, made=getattr(request, "param", Door))


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
    (path,) = SQL.glob(file)
    sql = path.read_text(encoding="utf-8")
    assert sql.count(old) == 1, f"{file} no longer holds {old!r} once"
    await database.pool.execute(sql.replace(old, new))
