"""What a person who wants in has already; giving them more is ``clubs.staff.grant_roles``."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import select

from lastcall.clubs.tables import StaffAssignment
from lastcall.db.transaction import Reader


async def held_roles(tx: Reader, club_id: UUID, person_id: UUID) -> frozenset[UUID]:
    """The roles that the person has there, deleted ones included."""
    rows = await tx.execute(
        select(StaffAssignment.role_id).where(
            StaffAssignment.club_id == club_id, StaffAssignment.person_id == person_id
        )
    )
    return frozenset(role_id for (role_id,) in rows.all())
