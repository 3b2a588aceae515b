"""The owner of the deadline at which an open decision expires (DEC-03).

The deadline is saved with the decision, so a restart finds it where it was; a row that fails is stepped past and hides
no other.
"""

from __future__ import annotations

from sqlalchemy import select

from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.clubs.activity import System
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.deadlines.due_rows import DueRows, Order
from lastcall.deadlines.poison import Candidate
from lastcall.deadlines.sweep import SweepOwner
from lastcall.decisions.questions.asking import DECISION_EXPIRY, DecisionStatus, end, hold
from lastcall.errors import NotFound

EXPIRY = System("decision expiry")
ORDER = Order("decisions", "expires_at", "status = 'open'", deadline="ceil_to_millisecond(expires_at)")


class DueDecisions(DueRows):
    """Finds open decisions whose time is over, and ends each in a transaction of its own."""

    def __init__(self, db: Database) -> None:
        super().__init__(db, ORDER)

    async def settle(self, candidate: Candidate) -> None:
        """End it, unless somebody decided it meanwhile or it is gone with its club."""
        async with self._db.transaction() as tx:
            try:
                row = await hold(tx, candidate.club_id, candidate.id)
            except NotFound:
                return
            if row.status == DecisionStatus.OPEN and await tx.scalar(select(row.expires_at <= NOW)):
                await end(tx, EXPIRY, row, DecisionStatus.EXPIRED, {})


def decision_expiry_owner(db: Database, clock: Clock = SYSTEM_CLOCK) -> SweepOwner:
    """The owner as the scheduler takes it."""
    return SweepOwner(DECISION_EXPIRY, DueDecisions(db), clock)
