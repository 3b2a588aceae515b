"""Who may do what in a club. Services ask here first; hot steps ask the same of ``person_holds`` in SQL.

Every question names the scope that an API token needs for it. Asked in a transaction with any scope but
``Scope.READ`` it holds the club's gate ``FOR SHARE`` until the transaction ends, and only then looks: a change of
authority either waits for the command to end or is seen by it. A command that itself changes authority calls
``bump_gate`` *before* it asks, because two that shared the gate first would wait for each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import TextClause, text

from lastcall.clubs.permissions import ALL_PERMISSIONS, Permission
from lastcall.db.transaction import Reader, Transaction
from lastcall.errors import Conflict, NotAllowed, NotFound
from lastcall.people.actor import Actor
from lastcall.people.holding import hold_operator, require_operator_now, require_token_now
from lastcall.people.scopes import Scope


@dataclass(frozen=True)
class Standing:
    """What one person is in one club. ``provider_role_ids`` are the VRChat roles (lower case) they may
    assign, ``assignable_role_ids`` the staff roles that their own roles let them hand on.
    """

    is_owner: bool
    is_staff: bool
    permissions: frozenset[Permission]
    provider_role_ids: frozenset[str]
    assignable_role_ids: frozenset[UUID] = frozenset()

    def holds(self, permission: Permission) -> bool:
        """Whether the person has this permission, by role or as the owner."""
        return permission in self.permissions

    def may_assign(self, provider_role_id: str) -> bool:
        """Whether the person may assign this VRChat role; the owner may assign any."""
        return self.is_owner or provider_role_id.lower() in self.provider_role_ids

    def may_hand_on(self, role_id: UUID) -> bool:
        """Whether the person may give and take this staff role; the owner any, others need ``manage_staff``."""
        return self.is_owner or (
            Permission.MANAGE_STAFF in self.permissions and role_id in self.assignable_role_ids
        )


_LOOK = text("select * from club_standing(:club_id, :person_id)")
_HOLD_AND_LOOK = text("select * from held_club_standing(:club_id, :person_id)")
_EXISTS = text("select 1 from clubs where id = :club_id and state <> 'deleting'")
_IS_OPEN = text("select 1 from clubs where id = :club_id and state in ('active', 'paused')")

_NOBODY = Standing(is_owner=False, is_staff=False, permissions=frozenset(), provider_role_ids=frozenset())


async def standing(tx: Reader, club_id: UUID, person_id: UUID) -> Standing:
    """What the person is in the club now, in one statement. Strangers and blocked persons stand as nobody, and
    everybody does in a club that is being deleted.

    A stored permission that this version does not know allows nothing.
    """
    return await _standing(tx, _LOOK, club_id, person_id)


async def standing_of(tx: Reader, actor: Actor, club_id: UUID, *, scope: Scope) -> Standing:
    """The actor's standing, whatever it is. Raises ``NotAllowed`` for a token without the scope, before any look
    at the club: a token learns nothing of what it was not made for."""
    actor.require_scope(scope)
    if isinstance(tx, Transaction) and scope is not Scope.READ:
        found = await _standing(tx, _HOLD_AND_LOOK, club_id, actor.person_id)
        await require_token_now(tx, actor)  # after the gate, for which the request may have waited
        return found
    return await standing(tx, club_id, actor.person_id)


async def _standing(tx: Reader, statement: TextClause, club_id: UUID, person_id: UUID) -> Standing:
    rows = (await tx.execute(statement, {"club_id": club_id, "person_id": person_id})).all()
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
            for provider_role in role.provider_role_ids
        ),
        assignable_role_ids=frozenset(role_id for role in roles for role_id in role.assignable_role_ids),
    )


async def require_staff(tx: Reader, actor: Actor, club_id: UUID, *, scope: Scope) -> Standing:
    """The actor's standing; ``NotFound`` when they are not on the club's staff, as for an unknown club."""
    found = await standing_of(tx, actor, club_id, scope=scope)
    if not found.is_staff:
        raise club_unknown()
    return found


async def require(
    tx: Reader, actor: Actor, club_id: UUID, permission: Permission, *, scope: Scope
) -> Standing:
    """The actor's standing; ``NotFound`` off the staff, ``NotAllowed`` on it without the permission."""
    found = await require_staff(tx, actor, club_id, scope=scope)
    if not found.holds(permission):
        raise NotAllowed(
            "permission_missing",
            f"This needs the permission “{permission.label}”, which none of your roles has.",
            advice="Ask the owner of the club for a role that has it.",
        )
    return found


async def require_owner(tx: Reader, actor: Actor, club_id: UUID, *, scope: Scope) -> Standing:
    """The actor's standing; ``NotFound`` off the staff, ``NotAllowed`` for staff that do not own the club."""
    found = await require_staff(tx, actor, club_id, scope=scope)
    if not found.is_owner:
        raise NotAllowed("owner_only", "Only the owner of the club may do this.", advice="Ask the owner.")
    return found


async def require_owner_or_operator(
    tx: Reader, actor: Actor | None, club_id: UUID, *others: UUID, scope: Scope
) -> None:
    """For the life of a club: its owner, an operator (with a token: one made for that), or the host's command
    line (no ``actor``), which see every club but one that is being deleted. ``others`` are people whom the
    transaction holds later: an operator is held with them in one order."""
    if actor is None or (actor.is_operator and actor.has_scope(Scope.OPERATOR)):
        if isinstance(tx, Transaction):
            await hold_operator(tx, actor, *others)
        else:
            await require_operator_now(tx, actor)
        if await tx.scalar(_EXISTS, {"club_id": club_id}) is None:
            raise club_unknown()
        return
    await require_owner(tx, actor, club_id, scope=scope)


async def require_open(tx: Transaction, club_id: UUID) -> None:
    """For what begins something new in a club: raises ``Conflict`` in an archived one. Ask it with the gate held,
    which archiving moves."""
    if await tx.scalar(_IS_OPEN, {"club_id": club_id}) is None:
        raise Conflict("club_inactive", "This club is archived.", advice="Bring it back first.")


def club_unknown() -> NotFound:
    """The one answer for a club that is not there and for one the reader is not on the staff of."""
    return NotFound("club_unknown", "There is no such club.", advice="Check the address.")
