"""Approvals that nobody decided. An agent that asked is told when one is archived by itself (RET-18).

One that was sent back for revision waits for its asker, so it is no candidate; resubmitted, its days begin anew.
"""

from __future__ import annotations

from uuid import UUID

from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import Standing, standing_of
from lastcall.db.base import Base
from lastcall.db.transaction import Reader
from lastcall.decisions.approvals.tables import Approval
from lastcall.decisions.retention.kind import Kind
from lastcall.errors import NotFound
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope


def approval_unknown() -> NotFound:
    """The one answer for an approval that is not there and for one that the reader may not see."""
    return NotFound("approval_unknown", "There is no such approval.", advice="Go back to the inbox.")


async def require_readable(tx: Reader, actor: Actor, club_id: UUID, *, scope: Scope) -> Standing:
    """The actor's standing; ``NotFound`` without ``decide_approvals``, the same as for an unknown approval (RET-19)."""
    found = await standing_of(tx, actor, club_id, scope=scope)
    if not found.holds(Permission.DECIDE_APPROVALS):
        raise approval_unknown()
    return found


APPROVAL = Kind(
    name="approval",
    owner="approval_retention",
    table=Base.metadata.tables[Approval.__tablename__],
    pending="pending",
    scope=Scope.DECISIONS,
    topic="approvals",
    unknown=approval_unknown,
    require_readable=require_readable,
)
