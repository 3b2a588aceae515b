"""The owner of lease expiry: a lease that ran out is ended, and its connection is offered to whoever
waits."""

from __future__ import annotations

from collections.abc import Sequence

from lastcall.connections.signals import LEASE_EXPIRY, work
from lastcall.db.database import Database
from lastcall.deadlines.owner import Position, Reading
from lastcall.deadlines.poison import Candidate
from lastcall.deadlines.sweep import SweepOwner

_NEXT = """
    select (select lastcall_now()) as now, (
        select l.expires_at from leases l
        where l.released_at is null
        order by l.expires_at, l.connection_id
        limit 1
    ) as deadline
"""
_NEXT_BEYOND = """
    select (select lastcall_now()) as now, (
        select l.expires_at from leases l
        where l.released_at is null and (l.expires_at, l.connection_id) > ($1::timestamptz, $2::uuid)
        order by l.expires_at, l.connection_id
        limit 1
    ) as deadline
"""
_BOUNDARY = """
    select expires_at, connection_id from leases
    where released_at is null and expires_at <= (select lastcall_now())
    order by expires_at desc, connection_id desc
    limit 1
"""
_PAGE = """
    select club_id, connection_id, expires_at from leases
    where released_at is null
      and ($1::timestamptz is null or (expires_at, connection_id) > ($1::timestamptz, $2::uuid))
      and (expires_at, connection_id) <= ($3::timestamptz, $4::uuid)
    order by expires_at, connection_id
    limit $5
"""
_END = "select * from end_expired_lease($1, $2)"


class LeaseExpiry:
    """The parts that the shared sweep asks for. An expired lease is no lease whether or not this ran."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def next_deadline(self, beyond: Position | None = None) -> Reading:
        """The earliest end of an open lease."""
        if beyond is None:
            row = await self._db.pool.fetchrow(_NEXT)
        else:
            row = await self._db.pool.fetchrow(_NEXT_BEYOND, beyond.time, beyond.id)
        if row is None:
            raise AssertionError("The statement answers exactly one row.")
        return Reading(row["now"], row["deadline"])

    async def boundary(self) -> Position | None:
        """The last lease that is over now."""
        row = await self._db.pool.fetchrow(_BOUNDARY)
        return None if row is None else Position(row["expires_at"], row["connection_id"])

    async def page(self, after: Position | None, upto: Position, limit: int) -> Sequence[Candidate]:
        """Leases behind ``after`` up to and with ``upto``."""
        rows = await self._db.pool.fetch(
            _PAGE,
            None if after is None else after.time,
            None if after is None else after.id,
            upto.time,
            upto.id,
            limit,
        )
        return [
            Candidate(row["club_id"], row["connection_id"], Position(row["expires_at"], row["connection_id"]))
            for row in rows
        ]

    async def settle(self, candidate: Candidate) -> None:
        """End the lease if it is still open and over; one that was renewed or taken anew is left alone."""
        async with self._db.transaction() as tx:
            account_id = await tx.raw.fetchval(_END, candidate.club_id, candidate.id)
            if account_id is not None:
                tx.publish(work(account_id))


def lease_expiry_owner(db: Database) -> SweepOwner:
    """The owner to register with the scheduler."""
    return SweepOwner(LEASE_EXPIRY, LeaseExpiry(db))
