"""What clubs keep about a person: what they own, which roles they have, what they did."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import text

from lastcall.clubs.activity import System, log
from lastcall.db.database import Database
from lastcall.db.transaction import Transaction
from lastcall.errors import Conflict
from lastcall.people.personal_data import PersonalData

ERASURE = System("erasure")


async def _refuse_owner(_: Database, tx: Transaction, person_id: UUID) -> None:
    owned = await tx.execute(
        text("select name from clubs where owner_id = :person order by name, id limit 20"),
        {"person": person_id},
    )
    names = [f"“{row.name}”" for row in owned.all()]
    if names:
        raise Conflict(
            "owns_clubs",
            f"This person owns {', '.join(names)}.",
            advice="Transfer or delete these clubs first.",
        )


async def _leave(_: Database, tx: Transaction, person_id: UUID) -> None:
    left = await tx.execute(
        text("delete from staff_assignments where person_id = :person returning club_id"),
        {"person": person_id},
    )
    for club_id in sorted({row.club_id for row in left.all()}):
        await log(tx, club_id, ERASURE, "staff.person_erased", "person", person_id)


SOURCES = (
    PersonalData(
        "club you own",
        ("clubs.owner_id",),
        "select id::text as k, id, slug, name, created_at from clubs where owner_id = :person",
        _refuse_owner,
    ),
    PersonalData(
        "role in a club",
        ("staff_assignments.person_id",),
        "select a.id::text as k, c.slug as club, r.name as role, a.created_at from staff_assignments a"
        " join clubs c on c.id = a.club_id join staff_roles r on r.club_id = a.club_id and r.id = a.role_id"
        " where a.person_id = :person",
        _leave,
    ),
    PersonalData(
        "what you did in a club",
        ("activity_log.actor_id",),
        "select a.id::text as k, c.slug as club, a.action, a.entity_type, a.created_at"
        " from activity_log a join clubs c on c.id = a.club_id where a.actor_id = :person",
        kept="The club's record of who did what, by id; the name is read from the person.",
    ),
)
