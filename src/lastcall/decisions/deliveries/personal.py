"""What is kept of what people were told: that they were, of which kind, and how; and for how long."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from sqlalchemy import text

from lastcall.db.database import Database
from lastcall.db.transaction import Transaction
from lastcall.people.data_retention import Rule
from lastcall.people.personal_data import PersonalData

KEPT = timedelta(days=90)
"""How long a message is kept after it was delivered or given up: as long as the record of mail that was sent."""


async def _told(_: Database, tx: Transaction, person_id: UUID) -> None:
    await tx.execute(text("delete from deliveries where person_id = :person"), {"person": person_id})


SOURCES = (
    PersonalData(
        "message to you",
        ("deliveries.person_id",),
        "select d.club_id || ' ' || d.id as k, c.slug as club, d.kind, d.channel, d.state, d.created_at, d.ended_at,"
        " d.dismissed_at from deliveries d join clubs c on c.id = d.club_id where d.person_id = :person",
        _told,
    ),
)
RULES = (
    Rule(
        "messages to people and agents, after they were delivered or given up", "deliveries", "ended_at", KEPT
    ),
)
