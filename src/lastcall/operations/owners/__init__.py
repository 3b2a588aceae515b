"""The deadlines of operations: lateness (pending and claimed apart), claim expiry, submission recovery, the mail about
what did not end well, what is to be gone through because an event or a creation changed, and what an ended epoch left.
"""

from __future__ import annotations

from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.db.database import Database
from lastcall.deadlines.batch import BatchOwner
from lastcall.deadlines.owner import Owner
from lastcall.deadlines.paged import PagedOwner
from lastcall.deadlines.sweep import SweepOwner
from lastcall.mail.mailer import Mailer
from lastcall.operations.owners.claims import ExpiredClaims
from lastcall.operations.owners.epochs import EndedEpochs
from lastcall.operations.owners.fanout import Fanouts
from lastcall.operations.owners.lateness import Late
from lastcall.operations.owners.mail import NoticeMail
from lastcall.operations.owners.submissions import OpenSubmissions
from lastcall.operations.signals import (
    CLAIM_EXPIRY,
    EPOCH_CLEANUP,
    FANOUT,
    LATE_CLAIMED,
    LATE_PENDING,
    OPERATION_MAIL,
    SUBMISSION_RECOVERY,
)


def operation_owners(db: Database, mailer: Mailer, clock: Clock = SYSTEM_CLOCK) -> list[Owner]:
    """All of them, to register with the scheduler. ``mailer`` writes to people about what did not end well."""
    return [
        BatchOwner(LATE_PENDING, Late(db, "pending"), clock),
        BatchOwner(LATE_CLAIMED, Late(db, "claimed"), clock),
        SweepOwner(CLAIM_EXPIRY, ExpiredClaims(db), clock),
        SweepOwner(SUBMISSION_RECOVERY, OpenSubmissions(db), clock),
        PagedOwner(OPERATION_MAIL, NoticeMail(db, mailer), clock),
        PagedOwner(FANOUT, Fanouts(db), clock),
        PagedOwner(EPOCH_CLEANUP, EndedEpochs(db), clock),
    ]
