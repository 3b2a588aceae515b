"""The names of this room's deadline owners, and what a change says once it is committed."""

from __future__ import annotations

from uuid import UUID

from lastcall.db.bus import Hint
from lastcall.db.transaction import Transaction
from lastcall.deadlines.signals import Signal

LATE_PENDING = "operation_late_pending"
LATE_CLAIMED = "operation_late_claimed"
CLAIM_EXPIRY = "claim_expiry"
SUBMISSION_RECOVERY = "submission_recovery"
OPERATION_MAIL = "operation_mail"
FANOUT = "operation_fanout"

TOPIC = "scheduled"
"""Topic of the ``Hint`` for pages that show operations."""


def changed(club_id: UUID) -> Hint:
    """Operations of this club changed."""
    return Hint(club_id, TOPIC)


async def say_ended(tx: Transaction, club_id: UUID) -> None:
    """Say, in the transaction in which operations of the club ended, that they changed, and that what depended on them
    waits to be gone through, if it does."""
    fanout_at = await tx.raw.fetchval("select first_fanout($1)", club_id)
    if fanout_at is not None:
        tx.publish(Signal(FANOUT, fanout_at))
    tx.publish(changed(club_id))
