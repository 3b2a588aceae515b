"""What a person gets when they are let in: the roles of their invite, all of them."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert as upsert

from lastcall.clubs.activity import System, log
from lastcall.clubs.tables import StaffAssignment
from lastcall.db.ids import new_id
from lastcall.db.transaction import Reader, Transaction
from lastcall.people.actor import Actor


async def held_roles(tx: Reader, club_id: UUID, person_id: UUID) -> frozenset[UUID]:
    """The roles that the person has there, deleted ones included."""
    rows = await tx.execute(
        select(StaffAssignment.role_id).where(
            StaffAssignment.club_id == club_id, StaffAssignment.person_id == person_id
        )
    )
    return frozenset(role_id for (role_id,) in rows.all())


async def grant_roles(
    tx: Transaction, club_id: UUID, person_id: UUID, role_ids: Collection[UUID], by: Actor | System
) -> None:
    """Give the person these roles; one that is held stays as it is. The caller holds the club's gate and has
    judged who may.
    """
    for role_id in sorted(role_ids):
        assigned = await tx.scalar(
            upsert(StaffAssignment)
            .values(club_id=club_id, id=new_id(), role_id=role_id, person_id=person_id)
            .on_conflict_do_nothing()
            .returning(StaffAssignment.id)
        )
        if assigned is not None:
            await log(tx, club_id, by, "staff.role_assigned", "person", person_id, {"role": str(role_id)})
