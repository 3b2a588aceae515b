"""Commands on staff roles: what a role allows. Who holds it is in ``staff.py``.

Only the owner makes, edits and deletes roles. Every change passes through the club's gate first, so that an
operation that is being authorized meanwhile is either authorized before the change or sees it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import case, delete, func, insert, select, update

from lastcall.clubs.activity import log
from lastcall.clubs.gates import bump_gate
from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import require_owner
from lastcall.clubs.queries import RoleView, read_role, role_unknown
from lastcall.clubs.tables import StaffAssignment, StaffRole, Visibility
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.transaction import Transaction
from lastcall.errors import Conflict, Invalid
from lastcall.names import valid_name
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope

ROLES_MOST = 100
"""Active roles of a club at most."""
PROVIDER_ROLES_MOST = 100
"""VRChat roles that one staff role may assign at most."""
DESCRIPTION_LENGTH = 200  # characters
_PROVIDER_ROLE = re.compile(r"grol_[a-z0-9_-]{1,95}")


@dataclass(frozen=True)
class RoleFields:
    """All that a role says. ``assignable_role_ids``: the roles its holders may hand on with ``manage_staff``;
    ``provider_role_ids``: the VRChat roles they may assign with ``assign_vrchat_roles``, in any case."""

    name: str
    description: str = ""
    permissions: frozenset[Permission] = frozenset()
    assignable_role_ids: frozenset[UUID] = frozenset()
    provider_role_ids: frozenset[str] = frozenset()


@dataclass(frozen=True)
class RoleDeleted:
    """What went with a role. ``owner_only`` names the visibility categories (``clubs.visibility``) that nobody but
    the owner sees now, because this was the last role on their list."""

    people: int
    owner_only: tuple[str, ...]


def fields_of(role: RoleView) -> RoleFields:
    """What the role says now, for whoever changes one thing of it."""
    return RoleFields(
        name=role.name,
        description=role.description,
        permissions=role.permissions,
        assignable_role_ids=role.assignable_role_ids,
        provider_role_ids=role.provider_role_ids,
    )


async def create_role(db: Database, actor: Actor, club_id: UUID, fields: RoleFields) -> RoleView:
    """Make a role that nobody holds yet. Owner only.

    Raises ``Invalid`` with the field, ``NotFound`` for an assignable role that is not there, and ``Conflict`` at
    ``ROLES_MOST``.
    """
    fields = _checked(fields)
    role_id = new_id()
    async with db.transaction() as tx:
        await bump_gate(tx, club_id)
        await require_owner(tx, actor, club_id, scope=Scope.STAFF)
        await _require_room(tx, club_id)
        await require_active_roles(tx, club_id, fields.assignable_role_ids)
        await tx.execute(insert(StaffRole).values(club_id=club_id, id=role_id, **_columns(fields)))
        await log(tx, club_id, actor, "staff.role_created", "staff_role", role_id, {"name": fields.name})
        return await read_role(tx, club_id, role_id)


async def edit_role(
    db: Database, actor: Actor, club_id: UUID, role_id: UUID, fields: RoleFields, seen: datetime
) -> RoleView:
    """Set all that a role says; answers it as it is then. Owner only.

    ``seen`` is the ``updated_at`` that the form was made from. Raises ``Invalid`` with the field, ``NotFound``
    for an unknown role, and ``Conflict`` with the fresh role when it moved meanwhile.
    """
    fields = _checked(fields)
    async with db.transaction() as tx:
        await bump_gate(tx, club_id)
        await require_owner(tx, actor, club_id, scope=Scope.STAFF)
        before = await _read_as_seen(tx, club_id, role_id, seen)
        await require_active_roles(tx, club_id, fields.assignable_role_ids)
        await tx.execute(
            update(StaffRole)
            .where(StaffRole.club_id == club_id, StaffRole.id == role_id)
            .values(**_columns(fields), updated_at=StaffRole.forward())
        )
        after = await read_role(tx, club_id, role_id)
        await log(tx, club_id, actor, "staff.role_edited", "staff_role", role_id, _changes(before, after))
        return after


async def delete_role(
    db: Database, actor: Actor, club_id: UUID, role_id: UUID, seen: datetime
) -> RoleDeleted:
    """Delete a role: nobody holds it, hands it on or sees anything by it any more. Owner only.

    Errors as for ``edit_role``.
    """
    async with db.transaction() as tx:
        await bump_gate(tx, club_id)
        await require_owner(tx, actor, club_id, scope=Scope.STAFF)
        before = await _read_as_seen(tx, club_id, role_id, seen)
        await tx.execute(
            delete(StaffAssignment).where(
                StaffAssignment.club_id == club_id, StaffAssignment.role_id == role_id
            )
        )
        await _remove_from_assignable(tx, club_id, role_id)
        owner_only = await _remove_from_visibility(tx, club_id, role_id)
        await tx.execute(
            update(StaffRole)
            .where(StaffRole.club_id == club_id, StaffRole.id == role_id)
            .values(
                state="deleted",
                permissions=[],
                assignable_role_ids=[],
                permitted_provider_role_ids=[],
                updated_at=StaffRole.forward(),
            )
        )
        details = {"name": before.name, "people": before.holders, "owner_only": owner_only}
        await log(tx, club_id, actor, "staff.role_deleted", "staff_role", role_id, details)
        return RoleDeleted(before.holders, tuple(owner_only))


async def require_active_roles(tx: Transaction, club_id: UUID, role_ids: Collection[UUID]) -> None:
    """Raises ``NotFound`` unless each of them is an active role of the club."""
    if not role_ids:
        return
    known = await tx.scalar(
        select(func.count()).where(
            StaffRole.club_id == club_id,
            StaffRole.state == "active",
            StaffRole.id.in_(role_ids),
        )
    )
    if known != len(set(role_ids)):
        raise role_unknown()


async def _read_as_seen(tx: Transaction, club_id: UUID, role_id: UUID, seen: datetime) -> RoleView:
    found = await read_role(tx, club_id, role_id)
    if found.updated_at != seen:
        raise Conflict(
            "role_moved",
            "Somebody changed this role meanwhile.",
            advice="Look at it as it is now, and edit again.",
            fresh=found,
        )
    return found


async def _require_room(tx: Transaction, club_id: UUID) -> None:
    count = await tx.scalar(
        select(func.count()).where(StaffRole.club_id == club_id, StaffRole.state == "active")
    )
    if count >= ROLES_MOST:
        raise Conflict(
            "roles_full",
            f"A club has at most {ROLES_MOST} roles.",
            advice="Delete one that nobody needs first.",
        )


async def _remove_from_assignable(tx: Transaction, club_id: UUID, role_id: UUID) -> None:
    await tx.execute(
        update(StaffRole)
        .where(StaffRole.club_id == club_id, StaffRole.assignable_role_ids.contains([role_id]))
        .values(
            assignable_role_ids=func.array_remove(StaffRole.assignable_role_ids, role_id),
            updated_at=StaffRole.forward(),
        )
    )


async def _remove_from_visibility(tx: Transaction, club_id: UUID, role_id: UUID) -> list[str]:
    left = func.array_remove(Visibility.role_ids, role_id)
    changed = await tx.execute(
        update(Visibility)
        .where(Visibility.club_id == club_id, Visibility.role_ids.contains([role_id]))
        .values(
            role_ids=left,
            audience=case((func.cardinality(left) == 0, "owner"), else_=Visibility.audience),
            updated_at=Visibility.forward(),
        )
        .returning(Visibility.category, Visibility.audience)
    )
    return sorted(row.category for row in changed.all() if row.audience == "owner")


def _checked(fields: RoleFields) -> RoleFields:
    provider_roles = frozenset(provider_role.strip().lower() for provider_role in fields.provider_role_ids)
    for provider_role in sorted(provider_roles):
        if _PROVIDER_ROLE.fullmatch(provider_role) is None:
            raise Invalid(
                "provider_role_malformed",
                f"“{provider_role[:100]}” is not a VRChat role id.",
                advice="It begins with grol_.",
                field="provider_role_ids",
            )
    if len(provider_roles) > PROVIDER_ROLES_MOST:
        raise Invalid(
            "provider_roles_full",
            f"A role may assign at most {PROVIDER_ROLES_MOST} VRChat roles.",
            field="provider_role_ids",
        )
    return replace(
        fields,
        name=valid_name(fields.name),
        description=valid_name(
            fields.description, field="description", most=DESCRIPTION_LENGTH, least=0, what="The description"
        ),
        permissions=frozenset(Permission(permission) for permission in fields.permissions),
        provider_role_ids=provider_roles,
    )


def _columns(fields: RoleFields) -> dict[str, Any]:
    return {
        "name": fields.name,
        "description": fields.description,
        "permissions": sorted(fields.permissions),
        "assignable_role_ids": sorted(fields.assignable_role_ids),
        "permitted_provider_role_ids": sorted(fields.provider_role_ids),
    }


def _changes(before: RoleView, after: RoleView) -> dict[str, Any]:
    """What an edit gave and took, and the new texts."""
    changes: dict[str, Any] = {}
    for name in ("name", "description"):
        if getattr(before, name) != getattr(after, name):
            changes[name] = getattr(after, name)
    for name in ("permissions", "assignable_role_ids", "provider_role_ids"):
        old, new = getattr(before, name), getattr(after, name)
        if old != new:
            changes[name] = {"given": _texts(new - old), "taken": _texts(old - new)}
    return changes


def _texts(values: Iterable[object]) -> list[str]:
    return sorted(str(value) for value in values)
