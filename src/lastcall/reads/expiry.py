"""The owner of read expiry: a quarter of an hour after it was asked for nothing of a read is left."""

from __future__ import annotations

from collections.abc import Sequence

from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.db.database import Database
from lastcall.deadlines.batch import BatchOwner
from lastcall.deadlines.owner import Position, Reading, behind
from lastcall.deadlines.poison import Candidate
from lastcall.reads.signals import READ_EXPIRY

_NEXT = """
    select (select lastcall_now()) as now, (
        select r.requested_at + read_kept() from provider_reads r
         where $1::timestamptz is null or (r.requested_at, r.id) > ($1, $2::uuid)
         order by r.requested_at, r.id
         limit 1
    ) as deadline
"""
_BOUNDARY = """
    select r.requested_at, r.id from provider_reads r
     where r.requested_at <= (select lastcall_now()) - read_kept()
     order by r.requested_at desc, r.id desc
     limit 1
"""
_PAGE = """
    select r.club_id, r.id, r.requested_at from provider_reads r
     where ($1::timestamptz is null or (r.requested_at, r.id) > ($1, $2::uuid))
       and (r.requested_at, r.id) <= ($3::timestamptz, $4::uuid)
     order by r.requested_at, r.id
     limit $5
"""
_EXPIRE = "select expire_reads($1, $2)"


class ReadExpiry:
    """The parts that the shared batch asks for."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def next_deadline(self, beyond: Position | None = None) -> Reading:
        """When the oldest read goes."""
        row = await self._db.pool.fetchrow(_NEXT, *behind(beyond))
        assert row is not None
        return Reading(row["now"], row["deadline"])

    async def boundary(self) -> Position | None:
        """The last read that is to go now."""
        row = await self._db.pool.fetchrow(_BOUNDARY)
        return None if row is None else Position(row["requested_at"], row["id"])

    async def page(self, after: Position | None, upto: Position, limit: int) -> Sequence[Candidate]:
        """Reads behind ``after`` up to and with ``upto``."""
        rows = await self._db.pool.fetch(_PAGE, *behind(after), upto.time, upto.id, limit)
        return [
            Candidate(row["club_id"], row["id"], Position(row["requested_at"], row["id"])) for row in rows
        ]

    async def settle(self, candidates: Sequence[Candidate]) -> None:
        """Delete them, and the evidence that they left."""
        clubs = [candidate.club_id for candidate in candidates]
        async with self._db.transaction() as tx:
            await tx.raw.execute(_EXPIRE, clubs, [candidate.id for candidate in candidates])


def read_expiry_owner(db: Database, clock: Clock = SYSTEM_CLOCK) -> BatchOwner:
    """The owner to register with the scheduler."""
    return BatchOwner(READ_EXPIRY, ReadExpiry(db), clock)
