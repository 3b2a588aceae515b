"""A submission whose outcome nobody reported within two minutes is recorded as unknown and never sent again
(RCV-01). It needs no healthy account, connection, lease or worker (RCV-02)."""

from __future__ import annotations

from collections.abc import Sequence

from lastcall.db.database import Database
from lastcall.deadlines.owner import Position
from lastcall.deadlines.poison import Candidate
from lastcall.operations.owners.rows import ClaimCandidate, DueRows, Order, claim_candidates
from lastcall.operations.signals import say_ended

_RECOVER = "select recover_submission($1, $2, $3, $4)"

SUBMISSION_ORDER = Order(
    state="submitted",
    time="claim_expires_at",
    is_due="o.claim_expires_at <= (select lastcall_now())",
    deadline="o.claim_expires_at",
)


class OpenSubmissions(DueRows):
    """A transaction a row, guarded by the nonce and the exact expiry that were seen."""

    def __init__(self, db: Database) -> None:
        super().__init__(db, SUBMISSION_ORDER)

    async def page(self, after: Position | None, upto: Position, limit: int) -> Sequence[ClaimCandidate]:
        return claim_candidates(await self.page_rows(after, upto, limit))

    async def settle(self, candidate: Candidate) -> None:
        assert isinstance(candidate, ClaimCandidate)
        async with self._db.transaction() as tx:
            if await tx.raw.fetchval(
                _RECOVER, candidate.club_id, candidate.id, candidate.nonce, candidate.position.time
            ):
                await say_ended(tx, candidate.club_id)
