"""A submission whose outcome nobody reported within two minutes is recorded as unknown and never sent again
(RCV-01). It needs no healthy account, connection, lease or worker (RCV-02)."""

from __future__ import annotations

from lastcall.db.database import Database
from lastcall.deadlines.poison import Candidate
from lastcall.operations.owners.rows import ClaimCandidate, ClaimRows, claim_order
from lastcall.operations.signals import say_ended

_RECOVER = "select recover_submission($1, $2, $3, $4)"

SUBMISSION_ORDER = claim_order("submitted")


class OpenSubmissions(ClaimRows):
    """A transaction a row, guarded by the nonce and the exact expiry that were seen."""

    def __init__(self, db: Database) -> None:
        super().__init__(db, SUBMISSION_ORDER)

    async def settle(self, candidate: Candidate) -> None:
        assert isinstance(candidate, ClaimCandidate)
        async with self._db.transaction() as tx:
            if await tx.raw.fetchval(
                _RECOVER, candidate.club_id, candidate.id, candidate.nonce, candidate.position.time
            ):
                await say_ended(tx, candidate.club_id)
