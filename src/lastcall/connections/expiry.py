"""The owner of lease expiry: a lease that ran out is ended, and its connection is offered to whoever
waits."""

from __future__ import annotations

from lastcall.connections.signals import LEASE_EXPIRY, work
from lastcall.db.database import Database
from lastcall.deadlines.due_rows import DueRows, Order
from lastcall.deadlines.poison import Candidate
from lastcall.deadlines.sweep import SweepOwner

LEASE_ORDER = Order("leases", "expires_at", "released_at is null", id="connection_id")
_END = "select * from end_expired_lease($1, $2)"


class LeaseExpiry(DueRows):
    """A transaction a lease. An expired lease is no lease whether or not this ran."""

    def __init__(self, db: Database) -> None:
        super().__init__(db, LEASE_ORDER)

    async def settle(self, candidate: Candidate) -> None:
        """End the lease if it is still open and over; one that was renewed or taken anew is left alone."""
        async with self._db.transaction() as tx:
            account_id = await tx.raw.fetchval(_END, candidate.club_id, candidate.id)
            if account_id is not None:
                tx.publish(work(account_id))


def lease_expiry_owner(db: Database) -> SweepOwner:
    """The owner to register with the scheduler."""
    return SweepOwner(LEASE_EXPIRY, LeaseExpiry(db))
