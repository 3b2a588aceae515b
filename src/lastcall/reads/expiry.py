"""The owner of read expiry: a quarter of an hour after it was asked for nothing of a read is left."""

from __future__ import annotations

from collections.abc import Sequence

from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.db.database import Database
from lastcall.deadlines.batch import BatchOwner
from lastcall.deadlines.due_rows import DueRows, Order
from lastcall.deadlines.poison import Candidate
from lastcall.reads.signals import READ_EXPIRY

READ_ORDER = Order(
    "provider_reads",
    "requested_at",
    "true",
    is_due="requested_at <= (select lastcall_now()) - read_kept()",
    deadline="requested_at + read_kept()",
)
_EXPIRE = "select expire_reads($1, $2)"


class ReadExpiry(DueRows):
    """A page is deleted in one transaction."""

    def __init__(self, db: Database) -> None:
        super().__init__(db, READ_ORDER)

    async def settle(self, candidates: Sequence[Candidate]) -> None:
        """Delete them, and the evidence that they left."""
        clubs = [candidate.club_id for candidate in candidates]
        async with self._db.transaction() as tx:
            await tx.raw.execute(_EXPIRE, clubs, [candidate.id for candidate in candidates])


def read_expiry_owner(db: Database, clock: Clock = SYSTEM_CLOCK) -> BatchOwner:
    """The owner to register with the scheduler."""
    return BatchOwner(READ_EXPIRY, ReadExpiry(db), clock)
