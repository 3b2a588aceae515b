"""What a person put out of their own sight: theirs alone, and gone with them."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import text

from lastcall.db.database import Database
from lastcall.db.transaction import Transaction
from lastcall.people.personal_data import PersonalData


async def _seen_again(_: Database, tx: Transaction, person_id: UUID) -> None:
    await tx.execute(text("delete from inbox_dismissals where person_id = :person"), {"person": person_id})


SOURCES = (
    PersonalData(
        "item you put away",
        ("inbox_dismissals.person_id",),
        "select d.club_id || ' ' || d.id as k, c.slug as club, d.item_id, d.until, d.created_at"
        " from inbox_dismissals d join clubs c on c.id = d.club_id where d.person_id = :person",
        _seen_again,
    ),
)
