"""A claim that ran out goes back to pending; the next claim gets a new nonce (WRK-12)."""

from __future__ import annotations

from lastcall.connections.signals import work
from lastcall.db.database import Database
from lastcall.deadlines.poison import Candidate
from lastcall.deadlines.signals import Signal
from lastcall.operations.owners.rows import ClaimCandidate, ClaimRows, claim_order
from lastcall.operations.schedules import late_at
from lastcall.operations.signals import LATE_PENDING, changed

_EXPIRE = "select * from expire_claim($1, $2, $3, $4)"

CLAIM_ORDER = claim_order("claimed")


class ExpiredClaims(ClaimRows):
    """A transaction a row. The connection may be worked on again, and the row may be late meanwhile."""

    def __init__(self, db: Database) -> None:
        super().__init__(db, CLAIM_ORDER)

    async def settle(self, candidate: Candidate) -> None:
        assert isinstance(candidate, ClaimCandidate)
        async with self._db.transaction() as tx:
            row = await tx.raw.fetchrow(
                _EXPIRE, candidate.club_id, candidate.id, candidate.nonce, candidate.position.time
            )
            if row is not None and row["is_done"]:
                tx.publish(Signal(LATE_PENDING, late_at(row["due_at"])))
                tx.publish(work(row["account_id"], row["ready_at"]))
                tx.publish(changed(candidate.club_id))
