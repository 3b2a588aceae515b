"""Commands on staff: who holds which role. What a role allows is in ``roles.py``.

Every change passes through the club's gate first: an operation that is being authorized meanwhile is either
authorized before the change or sees it, and the limits are counted by one command at a time.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import insert as upsert

from lastcall.clubs.activity import System, log
from lastcall.clubs.gates import bump_gate, lock_person
from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import Standing, require
from lastcall.clubs.queries import read_role
from lastcall.clubs.roles import require_active_roles
from lastcall.clubs.tables import Club, StaffAssignment
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.transaction import Transaction
from lastcall.errors import Conflict, Invalid, NotAllowed, NotFound
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope

ROLES_OF_PERSON_MOST = 100
"""Roles that one person holds in a club at most."""
ASSIGNMENTS_MOST = 500
"""Assignments of a club at most."""


async def assign_role(db: Database, actor: Actor, club_id: UUID, role_id: UUID, person_id: UUID) -> None:
    """Give a person a role. Assigning a role that is held already changes nothing.

    Owner: any role. Others need ``manage_staff`` and a role of their own that may hand this one on. Nobody
    changes their own roles, and the owner holds none. Raises ``NotFound`` for an unknown role or person and
    ``Conflict`` at ``ROLES_OF_PERSON_MOST`` or ``ASSIGNMENTS_MOST``.
    """
    async with db.transaction() as tx:
        await bump_gate(tx, club_id)
        await _require_delegation(tx, actor, club_id, role_id, person_id)
        if not await lock_person(tx, person_id):
            raise NotFound("person_unknown", "There is no such person.", field="person_id")
        await grant_roles(tx, club_id, person_id, [role_id], by=actor)


async def revoke_role(db: Database, actor: Actor, club_id: UUID, role_id: UUID, person_id: UUID) -> None:
    """Take a role from a person, under the same rules as giving it. A role that is not held is nothing to
    do.
    """
    async with db.transaction() as tx:
        await bump_gate(tx, club_id)
        await _require_delegation(tx, actor, club_id, role_id, person_id)
        revoked = await tx.scalar(
            delete(StaffAssignment)
            .where(
                StaffAssignment.club_id == club_id,
                StaffAssignment.role_id == role_id,
                StaffAssignment.person_id == person_id,
            )
            .returning(StaffAssignment.id)
        )
        if revoked is not None:
            await log(tx, club_id, actor, "staff.role_revoked", "person", person_id, {"role": str(role_id)})


def require_may_hand_on(found: Standing, role_ids: Collection[UUID]) -> None:
    """Raises ``NotAllowed`` unless this standing may give each of these roles."""
    if not all(found.may_hand_on(role_id) for role_id in role_ids):
        raise NotAllowed(
            "role_not_assignable",
            "None of your roles may hand this role on.",
            advice="Ask the owner to assign it, or to let your role do so.",
        )


async def grant_roles(
    tx: Transaction, club_id: UUID, person_id: UUID, role_ids: Collection[UUID], *, by: Actor | System
) -> list[UUID]:
    """Give a person these roles; answers those that they did not hold.

    Who may is the caller's question. The caller has moved the club's gate (``bump_gate``) in this transaction,
    so that nobody else counts at the same time. Raises ``NotFound`` for a role that is not there, ``Invalid`` for
    the owner, who holds none, and ``Conflict`` at ``ROLES_OF_PERSON_MOST`` or ``ASSIGNMENTS_MOST``.
    """
    wanted = sorted(set(role_ids))
    await require_active_roles(tx, club_id, wanted)
    if await tx.scalar(select(Club.owner_id).where(Club.id == club_id)) == person_id:
        raise Invalid(
            "owner_holds_no_role", "The owner holds every permission and no role.", field="person_id"
        )
    rows = [
        {"club_id": club_id, "id": new_id(), "role_id": role_id, "person_id": person_id} for role_id in wanted
    ]
    given = await tx.execute(
        upsert(StaffAssignment).values(rows).on_conflict_do_nothing().returning(StaffAssignment.role_id)
    )
    granted = sorted(given.scalars().all())
    if granted:
        await _require_within_limits(tx, club_id, person_id)
    for role_id in granted:
        await log(tx, club_id, by, "staff.role_assigned", "person", person_id, {"role": str(role_id)})
    return granted


async def _require_within_limits(tx: Transaction, club_id: UUID, person_id: UUID) -> None:
    counts = (
        await tx.execute(
            select(
                func.count().label("club"),
                func.count().filter(StaffAssignment.person_id == person_id).label("person"),
            ).where(StaffAssignment.club_id == club_id)
        )
    ).one()
    if counts.person > ROLES_OF_PERSON_MOST or counts.club > ASSIGNMENTS_MOST:
        raise Conflict(
            "assignments_full",
            f"A person holds at most {ROLES_OF_PERSON_MOST} roles in a club, and a club has at most"
            f" {ASSIGNMENTS_MOST} assignments.",
            advice="Take a role from somebody who no longer needs it first.",
        )


async def _require_delegation(
    tx: Transaction, actor: Actor, club_id: UUID, role_id: UUID, person_id: UUID
) -> None:
    found = await require(tx, actor, club_id, Permission.MANAGE_STAFF, scope=Scope.STAFF)
    await read_role(tx, club_id, role_id)
    if actor.person_id == person_id:
        raise NotAllowed(
            "own_roles",
            "Nobody changes their own roles.",
            advice="Ask the owner or another manager of staff.",
        )
    require_may_hand_on(found, [role_id])
