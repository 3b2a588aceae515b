"""Who may do what in a club. Services ask here first; hot steps ask the same of ``person_holds`` in SQL."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import text

from lastcall.clubs.permissions import ALL_PERMISSIONS, Permission
from lastcall.db.transaction import Reader
from lastcall.errors import NotAllowed, NotFound
from lastcall.people.actor import Actor


@dataclass(frozen=True)
class Standing:
    """What one person is in one club. ``provider_role_ids`` are the VRChat roles (lower case) they may
    assign.
    """

    is_owner: bool
    is_staff: bool
    permissions: frozenset[Permission]
    provider_role_ids: frozenset[str]

    def holds(self, permission: Permission) -> bool:
        """Whether the person has this permission, by role or as the owner."""
        return permission in self.permissions

    def may_assign(self, provider_role_id: str) -> bool:
        """Whether the person may assign this VRChat role; the owner may assign any."""
        return self.is_owner or provider_role_id.lower() in self.provider_role_ids


_STANDING = text("""
    select c.owner_id = p.id as is_owner, r.permissions, r.permitted_provider_role_ids
    from clubs c
    join people p on p.id = :person_id and p.blocked_at is null
    left join (
        staff_assignments a
        join staff_roles r on r.club_id = a.club_id and r.id = a.role_id and r.state = 'active'
    ) on a.club_id = c.id and a.person_id = p.id
    where c.id = :club_id
""")

_NOBODY = Standing(is_owner=False, is_staff=False, permissions=frozenset(), provider_role_ids=frozenset())


async def standing(tx: Reader, club_id: UUID, person_id: UUID) -> Standing:
    """What the person is in the club now, in one statement. Strangers and blocked persons stand as nobody.

    A stored permission that this version does not know allows nothing.
    """
    rows = (await tx.execute(_STANDING, {"club_id": club_id, "person_id": person_id})).all()
    if not rows:
        return _NOBODY
    roles = [row for row in rows if row.permissions is not None]
    stored = {name for role in roles for name in role.permissions}
    is_owner = rows[0].is_owner
    return Standing(
        is_owner=is_owner,
        is_staff=is_owner or bool(roles),
        permissions=ALL_PERMISSIONS if is_owner else frozenset(p for p in Permission if p in stored),
        provider_role_ids=frozenset(
            provider_role
            for role in roles
            if Permission.ASSIGN_VRCHAT_ROLES in role.permissions
            for provider_role in role.permitted_provider_role_ids
        ),
    )


async def require_staff(tx: Reader, actor: Actor, club_id: UUID) -> Standing:
    """The actor's standing; ``NotFound`` when they are not on the club's staff, as for an unknown club."""
    found = await standing(tx, club_id, actor.person_id)
    if not found.is_staff:
        raise club_unknown()
    return found


async def require(tx: Reader, actor: Actor, club_id: UUID, permission: Permission) -> Standing:
    """The actor's standing; ``NotFound`` off the staff, ``NotAllowed`` on it without the permission."""
    found = await require_staff(tx, actor, club_id)
    if not found.holds(permission):
        raise NotAllowed(
            "permission_missing",
            f"This needs the permission “{permission.label}”, which none of your roles has.",
            advice="Ask the owner of the club for a role that has it.",
        )
    return found


async def require_owner(tx: Reader, actor: Actor, club_id: UUID) -> Standing:
    """The actor's standing; ``NotFound`` off the staff, ``NotAllowed`` for staff that do not own the club."""
    found = await require_staff(tx, actor, club_id)
    if not found.is_owner:
        raise NotAllowed("owner_only", "Only the owner of the club may do this.", advice="Ask the owner.")
    return found


def club_unknown() -> NotFound:
    """The one answer for a club that is not there and for one the reader is not on the staff of."""
    return NotFound("club_unknown", "There is no such club.", advice="Check the address.")
