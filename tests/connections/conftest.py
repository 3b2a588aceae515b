"""A club with an owner, an account with its key, and a connection between them."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

import pytest

from lastcall.clubs.service import add_club
from lastcall.connections.accounts import NewKey
from lastcall.connections.connect import connect_club, disconnect_club, finish_disconnect
from lastcall.connections.leases import take_lease
from lastcall.connections.states import Feature
from lastcall.connections.worker import LeaseHeld, Worker
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.people.service import add_person
from lastcall.testing.connecting import activate
from lastcall.testing.fleet import ready_account

FIRST_TOKEN = 2
"""Of a site's first lease: the look that made its connection active had another."""


@dataclass(frozen=True)
class Site:
    """What most tests need; ``worker`` is a collector process of the account that proved its key."""

    db: Database
    owner_id: UUID
    club_id: UUID
    account: NewKey
    connection_id: UUID
    worker: Worker

    def other_worker(self) -> Worker:
        return Worker(self.worker.account_id, self.worker.generation, new_id(), self.worker.vrchat_user_id)

    async def lease(self, worker: Worker | None = None) -> LeaseHeld:
        given = await take_lease(self.db, worker or self.worker, self.club_id, self.connection_id)
        return LeaseHeld(self.club_id, self.connection_id, given.epoch, given.fencing_token)

    async def end(self) -> None:
        """Disconnect, as if the account had left the group at once."""
        await disconnect_club(self.db, None, self.club_id, self.connection_id)
        await finish_disconnect(self.db, None, self.club_id, self.connection_id)

    async def set(self, table: str, **values: object) -> None:
        """Write facts directly, where no command is what the test is about."""
        columns = ", ".join(f"{name} = ${number}" for number, name in enumerate(values, 1))
        await self.db.pool.execute(f"update {table} set {columns}", *values.values())


async def build_site(db: Database, number: int = 1) -> Site:
    owner_id = await add_person(db, f"owner{number}@example.org", "Owner")
    club_id = await add_club(db, None, f"Club {number}", f"club-{number}", "UTC", owner_id)
    account = await ready_account(db, f"account-{number}", f"usr_{number}")
    connection_id = await connect_club(
        db,
        None,
        club_id,
        group_id=f"grp_{number}",
        group_name=f"Group {number}",
        account_id=account.account_id,
        features=list(Feature),
    )
    await activate(db, club_id, connection_id)
    worker = Worker(account.account_id, account.generation, new_id(), f"usr_{number}")
    return Site(db, owner_id, club_id, account, connection_id, worker)


@pytest.fixture
async def site(database: Database) -> Site:
    return await build_site(database)
