"""What decisions keep about a person: what they asked and what they chose."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import text

from lastcall.clubs.personal import ERASURE
from lastcall.db.database import Database
from lastcall.db.transaction import Transaction
from lastcall.decisions.questions.asking import DecisionStatus, end, hold
from lastcall.people.personal_data import PersonalData

_OPEN = text(
    "select club_id, id from decisions where requested_by_person_id = :person and status = 'open' order by club_id, id"
)


async def _asked(_: Database, tx: Transaction, person_id: UUID) -> None:
    """Nobody is left to be answered: what is still open is called off. What it said stays the club's record."""
    for row in (await tx.execute(_OPEN, {"person": person_id})).all():
        held = await hold(tx, row.club_id, row.id)
        if held.status == DecisionStatus.OPEN:
            await end(tx, ERASURE, held, DecisionStatus.CANCELLED, {})


SOURCES = (
    PersonalData(
        "decision you asked for",
        ("decisions.requested_by_person_id",),
        "select d.club_id || ' ' || d.id as k, c.slug as club, d.title, d.body, d.options, d.status, d.created_at,"
        " d.expires_at, d.decided_option, d.decided_at, d.decision_note"
        " from decisions d join clubs c on c.id = d.club_id where d.requested_by_person_id = :person",
        _asked,
    ),
    PersonalData(
        "decision you made",
        ("decisions.decided_by",),
        "select d.club_id || ' ' || d.id as k, c.slug as club, d.decided_option, d.decided_at, d.decision_note"
        " from decisions d join clubs c on c.id = d.club_id where d.decided_by = :person",
        kept="The club's record of who decided, by id.",
    ),
)
