"""A club has one owner, always: ownership is one column, and it never comes from a role."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import delete, update

from lastcall.clubs.activity import COMMAND_LINE, log
from lastcall.clubs.gates import bump_gate, lock_person
from lastcall.clubs.policy import require_owner_or_operator
from lastcall.clubs.queries import ClubSettings, read_settings
from lastcall.clubs.staff import grant_roles
from lastcall.clubs.tables import Club, StaffAssignment
from lastcall.db.database import Database
from lastcall.db.transaction import Transaction
from lastcall.errors import Invalid, NotFound
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope


async def transfer_club(
    db: Database,
    actor: Actor | None,
    club_id: UUID,
    new_owner_id: UUID,
    *,
    former_owner_role_id: UUID | None = None,
) -> ClubSettings:
    """Give the club to another person, who then holds everything and no role rows.

    The owner may give it to somebody on the staff; an operator or the command line to anybody.
    ``former_owner_role_id`` is a role that the former owner keeps; without one they leave the staff. Raises
    ``NotFound`` for a person or role that cannot be chosen, ``Invalid`` when they own it already, and
    ``NotAllowed`` for a person who must first confirm that it is them.
    """
    if actor is not None:
        actor.require_recent()
    async with db.transaction() as tx:
        await bump_gate(tx, club_id)
        await require_owner_or_operator(tx, actor, club_id, new_owner_id, scope=Scope.CLUBS)
        is_there = await lock_person(tx, new_owner_id)
        before = await read_settings(tx, club_id)
        if before.owner_id == new_owner_id:
            raise Invalid("owner_already", "They own the club already.", field="new_owner_id")
        roles = await _take_roles(tx, club_id, new_owner_id)
        is_own = actor is not None and actor.person_id == before.owner_id
        if not is_there or (is_own and not roles):
            raise NotFound(
                "person_unknown",
                "There is no such person on the staff." if is_own else "There is no such person.",
                advice="Give them a role first." if is_own else "Add the person first.",
                field="new_owner_id",
            )
        await tx.execute(
            update(Club).where(Club.id == club_id).values(owner_id=new_owner_id, updated_at=Club.forward())
        )
        details = {"from": str(before.owner_id), "roles": [str(role) for role in roles]}
        await log(tx, club_id, actor or COMMAND_LINE, "club.transferred", "person", new_owner_id, details)
        if former_owner_role_id is not None:
            await grant_roles(tx, club_id, before.owner_id, [former_owner_role_id], by=actor or COMMAND_LINE)
        return await read_settings(tx, club_id)


async def _take_roles(tx: Transaction, club_id: UUID, person_id: UUID) -> list[UUID]:
    taken = await tx.execute(
        delete(StaffAssignment)
        .where(StaffAssignment.club_id == club_id, StaffAssignment.person_id == person_id)
        .returning(StaffAssignment.role_id)
    )
    return sorted(taken.scalars().all())
