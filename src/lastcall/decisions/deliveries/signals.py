"""The names of the deadline owners of what is told, and what a change says once it is committed."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from lastcall.db.bus import Hint

DELIVERIES = "deliveries"
RETENTION_REMINDER = "retention_reminder"
RETENTION_DIGEST = "retention_digest"

NOTICES = "notices"
"""Topic of the ``Hint`` for pages that show what people were told."""
DEAD = "deliveries"
"""Topic of the ``Hint`` for pages that show what could not be delivered."""
SEND_TIMEOUT = timedelta(seconds=10)
"""How long one attempt by a channel may take in all, and so how long a stop waits for it."""


def for_agent(club_id: UUID, agent_id: UUID) -> Hint:
    """Something waits for this agent, which may be asking for it."""
    return Hint(club_id, f"agent {agent_id}")
