"""The names of this room's deadline owner and of its hint."""

from __future__ import annotations

from uuid import UUID

from lastcall.db.bus import Hint

READ_EXPIRY = "read_expiry"

TOPIC = "reads"
"""Topic of the ``Hint`` for pages that wait for a read."""


def changed(club_id: UUID) -> Hint:
    """A read of this club is over."""
    return Hint(club_id, TOPIC)
