"""Who may see join requests."""

from __future__ import annotations

from uuid import UUID

from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import Standing, standing_of
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


def join_request_unknown() -> NotFound:
    """The one answer for a request that is not there and for one that the reader may not see."""
    return NotFound("join_request_unknown", "There is no such join request.", advice="Go back to the inbox.")
