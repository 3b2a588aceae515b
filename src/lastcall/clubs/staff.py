"""Commands on staff: what roles allow and who holds them.

Everything that takes authority away passes through the club's gate first, so that an operation that is being
authorized meanwhile is either authorized before the change or sees it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any
from uuid import UUID

from sqlalchemy import delete, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from lastcall.clubs.activity import log
from lastcall.clubs.gates import bump_gate
from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import require, require_owner
from lastcall.clubs.tables import Club, StaffAssignment, StaffRole
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.transaction import Transaction
from lastcall.errors import Invalid, NotAllowed, NotFound
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope
from lastcall.people.tables import Person


async def assign_role(db: Database, actor: Actor, club_id: UUID, role_id: UUID, person_id: UUID) -> None:
    """Give a person a role. Assigning a role that is held already changes nothing.

    Owner: any role. Others need ``manage_staff`` and a role of their own that may hand this one on. Nobody
    changes their own roles, and the owner holds none.
    """
    async with db.transaction() as tx:
        await bump_gate(tx, club_id)
        await _require_delegation(tx, actor, club_id, role_id, person_id)
        if await tx.scalar(select(Person.id).where(Person.id == person_id)) is None:
            raise NotFound("person_unknown", "There is no such person.")
        if await tx.scalar(select(Club.owner_id).where(Club.id == club_id)) == person_id:
            raise Invalid(
                "owner_holds_no_role", "The owner holds every permission and no role.", field="person_id"
            )
        assigned = await tx.scalar(
            upsert(StaffAssignment)
            .values(club_id=club_id, id=new_id(), role_id=role_id, person_id=person_id)
            .on_conflict_do_nothing()
            .returning(StaffAssignment.id)
        )
        if assigned is not None:
            await log(tx, club_id, actor, "staff.role_assigned", "person", person_id, {"role": str(role_id)})


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


async def set_role_permissions(
    db: Database, actor: Actor, club_id: UUID, role_id: UUID, permissions: Collection[Permission]
) -> None:
    """Set what a role allows. Owner only."""
    await _edit_role(db, actor, club_id, role_id, "permissions", sorted({Permission(p) for p in permissions}))


async def set_permitted_provider_roles(
    db: Database, actor: Actor, club_id: UUID, role_id: UUID, provider_role_ids: Iterable[str]
) -> None:
    """Set the VRChat roles that holders may assign (with ``assign_vrchat_roles``). Owner only."""
    ids = sorted({provider_role.strip().lower() for provider_role in provider_role_ids} - {""})
    await _edit_role(db, actor, club_id, role_id, "permitted_provider_role_ids", ids)


async def set_assignable_roles(
    db: Database, actor: Actor, club_id: UUID, role_id: UUID, assignable_role_ids: Iterable[UUID]
) -> None:
    """Set the roles that holders may hand on (with ``manage_staff``). Owner only."""
    wanted = set(assignable_role_ids)
    async with db.transaction() as tx:
        await bump_gate(tx, club_id)
        await require_owner(tx, actor, club_id, scope=Scope.STAFF)
        known = await tx.execute(
            select(StaffRole.id).where(
                StaffRole.club_id == club_id, StaffRole.state == "active", StaffRole.id.in_(wanted)
            )
        )
        if wanted - {role for (role,) in known.all()}:
            raise _role_unknown()
        await _edit_role(db, actor, club_id, role_id, "assignable_role_ids", sorted(wanted))


async def _edit_role(
    db: Database, actor: Actor, club_id: UUID, role_id: UUID, field: str, value: list[Any]
) -> None:
    async with db.transaction() as tx:
        await bump_gate(tx, club_id)
        await require_owner(tx, actor, club_id, scope=Scope.STAFF)
        edited = await tx.scalar(
            update(StaffRole)
            .where(StaffRole.club_id == club_id, StaffRole.id == role_id, StaffRole.state == "active")
            .values({field: value, "updated_at": NOW})
            .returning(StaffRole.id)
        )
        if edited is None:
            raise _role_unknown()
        details = {field: [str(entry) for entry in value]}
        await log(tx, club_id, actor, "staff.role_edited", "staff_role", role_id, details)


async def _require_delegation(
    tx: Transaction, actor: Actor, club_id: UUID, role_id: UUID, person_id: UUID
) -> None:
    found = await require(tx, actor, club_id, Permission.MANAGE_STAFF, scope=Scope.STAFF)
    role = await tx.scalar(
        select(StaffRole.id).where(
            StaffRole.club_id == club_id, StaffRole.id == role_id, StaffRole.state == "active"
        )
    )
    if role is None:
        raise _role_unknown()
    if actor.person_id == person_id:
        raise NotAllowed(
            "own_roles",
            "Nobody changes their own roles.",
            advice="Ask the owner or another manager of staff.",
        )
    if not found.may_hand_on(role_id):
        raise NotAllowed(
            "role_not_assignable",
            "None of your roles may hand this role on.",
            advice="Ask the owner to assign it, or to let your role do so.",
        )


def _role_unknown() -> NotFound:
    return NotFound("role_unknown", "There is no such role in this club.", field="role_id")
