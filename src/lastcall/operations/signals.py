"""The names of this room's deadline owners, and what a change says once it is committed."""

from __future__ import annotations

from uuid import UUID

from lastcall.db.bus import Hint

LATE_PENDING = "operation_late_pending"
LATE_CLAIMED = "operation_late_claimed"
CLAIM_EXPIRY = "claim_expiry"
SUBMISSION_RECOVERY = "submission_recovery"
OPERATION_MAIL = "operation_mail"

TOPIC = "scheduled"
"""Topic of the ``Hint`` for pages that show operations."""


def changed(club_id: UUID) -> Hint:
    """Operations of this club changed."""
    return Hint(club_id, TOPIC)
