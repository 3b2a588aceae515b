"""What reads keep about a person: for a quarter of an hour, that they asked."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import text

from lastcall.db.database import Database
from lastcall.db.transaction import Transaction
from lastcall.people.personal_data import PersonalData


async def _erase(_: Database, tx: Transaction, person_id: UUID) -> None:
    await tx.execute(
        text("delete from provider_read_askers where person_id = :person"), {"person": person_id}
    )


SOURCES = (
    PersonalData(
        "read you wait for",
        ("provider_read_askers.person_id",),
        "select r.club_id || ' ' || r.id as k, c.slug as club, r.kind, r.params, r.requested_at"
        " from provider_read_askers a join provider_reads r on r.club_id = a.club_id and r.id = a.read_id"
        " join clubs c on c.id = a.club_id where a.person_id = :person",
        _erase,
    ),
)
