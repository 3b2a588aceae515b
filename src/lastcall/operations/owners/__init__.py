"""The deadlines of operations: lateness (pending and claimed apart), claim expiry, submission recovery."""

from __future__ import annotations

from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.db.database import Database
from lastcall.deadlines.batch import BatchOwner
from lastcall.deadlines.owner import Owner
from lastcall.deadlines.sweep import SweepOwner
from lastcall.operations.owners.claims import ExpiredClaims
from lastcall.operations.owners.lateness import Late
from lastcall.operations.owners.submissions import OpenSubmissions
from lastcall.operations.signals import CLAIM_EXPIRY, LATE_CLAIMED, LATE_PENDING, SUBMISSION_RECOVERY


def operation_owners(db: Database, clock: Clock = SYSTEM_CLOCK) -> list[Owner]:
    """All of them, to register with the scheduler."""
    return [
        BatchOwner(LATE_PENDING, Late(db, "pending"), clock),
        BatchOwner(LATE_CLAIMED, Late(db, "claimed"), clock),
        SweepOwner(CLAIM_EXPIRY, ExpiredClaims(db), clock),
        SweepOwner(SUBMISSION_RECOVERY, OpenSubmissions(db), clock),
    ]
