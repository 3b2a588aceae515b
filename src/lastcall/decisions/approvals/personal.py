"""What approvals keep about a person: what they asked, said and decided."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import text

from lastcall.clubs.personal import ERASURE
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.transaction import Transaction
from lastcall.decisions.approvals.machine import Event, Status
from lastcall.decisions.approvals.rows import hold, move_of, write
from lastcall.people.personal_data import PersonalData

_OPEN = text(
    "select club_id, id from approvals where requested_by_person_id = :person"
    " and status in ('pending', 'revision_requested') order by club_id, id"
)


async def _asked(_: Database, tx: Transaction, person_id: UUID) -> None:
    """Nobody is left to be answered: what still waits is withdrawn. What it said stays the club's record."""
    for row in (await tx.execute(_OPEN, {"person": person_id})).all():
        held = await hold(tx, row.club_id, row.id)
        if Status(held.status).is_open:
            await write(tx, ERASURE, held, move_of(held, Event.WITHDRAW), {"decided_at": NOW})


SOURCES = (
    PersonalData(
        "approval you asked for",
        ("approvals.requested_by_person_id",),
        "select a.club_id || ' ' || a.id as k, c.slug as club, a.type, a.title, a.body, a.status, a.created_at,"
        " a.activity_at, a.decided_at, a.decision_note"
        " from approvals a join clubs c on c.id = a.club_id where a.requested_by_person_id = :person",
        _asked,
    ),
    PersonalData(
        "approval you decided",
        ("approvals.decided_by",),
        "select a.club_id || ' ' || a.id as k, c.slug as club, a.type, a.status, a.decided_at, a.decision_note"
        " from approvals a join clubs c on c.id = a.club_id where a.decided_by = :person",
        kept="The club's record of who decided, by id.",
    ),
    PersonalData(
        "comment on an approval",
        ("approval_comments.person_id",),
        "select m.club_id || ' ' || m.id as k, c.slug as club, m.kind, m.body, m.created_at"
        " from approval_comments m join clubs c on c.id = m.club_id where m.person_id = :person",
        kept="The club's record of what was said before it was decided, by id.",
    ),
)
