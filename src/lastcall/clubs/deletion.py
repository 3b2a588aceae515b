"""The owner that removes what a deleted club left: every row of every table that has a ``club_id``, from the
schema, so that no table is forgotten.

Children go before what they refer to, in pages of a transaction each. Where it is, is only remembered to save
probes; after a crash the next step begins anew at the first table and finds what is left. The last step takes the
club's row alone, so that nobody can add to it any more, looks through all tables once again, and only when they are
empty removes the club itself.
"""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import Table, delete, select

from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.clubs.life import CLUB_DELETION
from lastcall.clubs.tables import Club, tables_of_clubs
from lastcall.db.base import Base
from lastcall.db.database import Database
from lastcall.db.tables import Directory
from lastcall.db.transaction import Transaction
from lastcall.deadlines.noted import NotedWork, Notes
from lastcall.deadlines.paged import PagedOwner
from lastcall.deadlines.poison import Candidate

ROWS = 500
"""Rows of one page, and so of one transaction, at most; rows that refer to them are gone by then."""


def walked() -> list[Table]:
    """Every table whose rows belong to a club, those that refer to others first. The directory is the last: what
    a club is known by is free when nothing else is left of it."""
    tables = [table for table in reversed(tables_of_clubs()) if table is not Directory.__table__]
    return [*tables, Base.metadata.tables[Directory.__tablename__]]


class ClubDeletion(NotedWork):
    """Removes the club that was deleted first. Deleting is due at once."""

    # clubs_deleting_idx holds what is to be removed and nothing else.
    notes = Notes("clubs", "updated_at", club_id="id", only="n.state = 'deleting'")

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self._reached: dict[UUID, int] = {}

    async def step(self, candidate: Candidate) -> None:
        """Remove one page, or the club when none is left."""
        club_id = candidate.club_id
        tables = walked()
        for place in range(self._reached.pop(club_id, 0), len(tables)):
            if await self._remove_page(tables[place], club_id):
                self._reached[club_id] = place
                return
        async with self._db.transaction() as tx:
            await _remove_club(tx, tables, club_id)

    async def _remove_page(self, table: Table, club_id: UUID) -> int:
        # By place, not by key: tables differ in theirs. A row that moved meanwhile is met by the last look.
        statement = (
            f"delete from {table.name} where club_id = $1 and ctid = any (array("  # noqa: S608 - our own name
            f"select ctid from {table.name} where club_id = $1 limit {ROWS}))"
        )
        async with self._db.transaction() as tx:
            tag: str = await tx.raw.execute(statement, club_id)
        return int(tag.removeprefix("DELETE "))


async def _remove_club(tx: Transaction, tables: list[Table], club_id: UUID) -> None:
    """The last step; it leaves the club for another round when anything was added meanwhile."""
    await tx.execute(select(Club.id).where(Club.id == club_id, Club.state == "deleting").with_for_update())
    for table in tables:
        if await tx.scalar(select(1).select_from(table).where(table.c.club_id == club_id).limit(1)):
            return
    await tx.execute(delete(Club).where(Club.id == club_id, Club.state == "deleting"))


def club_deletion_owner(db: Database, clock: Clock = SYSTEM_CLOCK) -> PagedOwner:
    """The owner to register with the scheduler."""
    return PagedOwner(CLUB_DELETION, ClubDeletion(db), clock)
