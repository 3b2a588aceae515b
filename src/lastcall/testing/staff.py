"""Change one thing about a staff role, as its owner would in the form that holds all of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from uuid import UUID

from lastcall.clubs.permissions import Permission
from lastcall.clubs.queries import RoleView, read_role
from lastcall.clubs.roles import edit_role, fields_of
from lastcall.db.database import Database
from lastcall.people.actor import Actor


async def change_role(
    db: Database,
    owner: Actor,
    club_id: UUID,
    role_id: UUID,
    *,
    permissions: Iterable[Permission] | None = None,
    assignable: Iterable[UUID] | None = None,
    provider_roles: Iterable[str] | None = None,
) -> RoleView:
    """Set what is given and leave the rest."""
    async with db.read() as tx:
        role = await read_role(tx, club_id, role_id)
    fields = fields_of(role)
    if permissions is not None:
        fields = replace(fields, permissions=frozenset(permissions))
    if assignable is not None:
        fields = replace(fields, assignable_role_ids=frozenset(assignable))
    if provider_roles is not None:
        fields = replace(fields, provider_role_ids=frozenset(provider_roles))
    return await edit_role(db, owner, club_id, role_id, fields, role.updated_at)
