"""The names of this room's deadline owners, and what a change says once it is committed."""

from __future__ import annotations

from datetime import timedelta
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
EPOCH_CLEANUP = "epoch_cleanup"

TOPIC = "scheduled"
"""Topic of the ``Hint`` for pages that show operations."""

MAIL_AFTER = timedelta(seconds=60)
"""How long after the first end of a batch its mail waits for the others. The SQL has the same."""

_WAITING = f"select first_fanout($1) as {FANOUT}, first_notice_mail() as {OPERATION_MAIL}"


def changed(club_id: UUID) -> Hint:
    """Operations of this club changed."""
    return Hint(club_id, TOPIC)


async def say_ended(tx: Transaction, club_id: UUID) -> None:
    """Say, in the transaction in which operations of the club ended, that they changed; and what waits since then, if
    anything does: what depended on them to be gone through, what did not end well to be mailed."""
    row = await tx.raw.fetchrow(_WAITING, club_id)
    assert row is not None
    for owner in (FANOUT, OPERATION_MAIL):
        if row[owner] is not None:
            tx.publish(Signal(owner, row[owner]))
    tx.publish(changed(club_id))
