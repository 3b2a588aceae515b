"""Who may see join requests, and who may hand which roles on to others."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from sqlalchemy import select

from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import Standing, standing, standing_of
from lastcall.clubs.tables import StaffRole
from lastcall.db.transaction import Reader
from lastcall.errors import NotFound
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope


async def require_readable(tx: Reader, actor: Actor, club_id: UUID, *, scope: Scope) -> Standing:
    """The actor's standing; ``NotFound`` without ``decide_access``, the same as for an unknown request
    (RET-19).
    """
    found = await standing_of(tx, actor, club_id, scope=scope)
    if not found.holds(Permission.DECIDE_ACCESS):
        raise join_request_unknown()
    return found


async def handed_on(
    tx: Reader, club_id: UUID, person_id: UUID, role_ids: Collection[UUID]
) -> frozenset[UUID]:
    """Which of these roles are there and may be handed on by that person now. A command asks it under the
    club's gate.
    """
    found = await standing(tx, club_id, person_id)
    rows = await tx.execute(
        select(StaffRole.id).where(
            StaffRole.club_id == club_id, StaffRole.id.in_(role_ids), StaffRole.state == "active"
        )
    )
    return frozenset(role_id for (role_id,) in rows.all() if found.may_hand_on(role_id))


def join_request_unknown() -> NotFound:
    """The one answer for a request that is not there and for one that the reader may not see."""
    return NotFound("join_request_unknown", "There is no such join request.", advice="Go back to the inbox.")


def invite_unknown() -> NotFound:
    """The one answer for a token that was never made, was used, was revoked, has expired, or whose inviter or
    club can no longer let anybody in: a guesser learns nothing.
    """
    return NotFound(
        "invite_unknown",
        "This invitation cannot be used.",
        advice="It was used, was taken back, is too old, or was not copied whole. Ask for a new one.",
    )
