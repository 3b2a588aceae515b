"""Stop one operation before it is sent."""

from __future__ import annotations

from uuid import UUID

from lastcall.clubs.activity import log
from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import require_staff
from lastcall.db.database import Database
from lastcall.errors import Conflict, NotAllowed
from lastcall.operations.machine import UNSENT, State
from lastcall.operations.queries import operation
from lastcall.operations.signals import changed
from lastcall.operations.views import OperationView
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope

_LOCK = "select from operations where club_id = $1 and id = $2 for no key update"
_CANCEL = "select settle_unsent($1, $2, 'cancelled', 'cancelled_by_staff', lastcall_now())"


async def cancel(
    db: Database, actor: Actor, club_id: UUID, operation_id: UUID, revision: int
) -> OperationView:
    """Cancel what is pending or claimed, at the revision the person saw; answers the row as it is then.

    Cancelling a cancelled one changes nothing. Raises ``NotFound`` for what the reader may not see,
    ``NotAllowed`` for another person's without ``manage_scheduled_actions``, ``Conflict`` with the fresh row
    when it moved on.
    """
    async with db.transaction() as tx:
        # The locks first, the gate's with the standing: what is judged after them stays true until the commit.
        standing = await require_staff(tx, actor, club_id, scope=Scope.OPERATIONS)
        await tx.raw.fetch(_LOCK, club_id, operation_id)
        row = await operation(tx, standing, actor, club_id, operation_id)
        if row.actor_id != actor.person_id and not standing.holds(Permission.MANAGE_SCHEDULED_ACTIONS):
            raise NotAllowed(
                "permission_missing",
                f"What somebody else queued needs “{Permission.MANAGE_SCHEDULED_ACTIONS.label}” to cancel.",
                advice="Ask the owner of the club for a role that has it.",
            )
        if row.state is State.CANCELLED:
            return row
        if row.state not in UNSENT:
            raise Conflict(
                "operation_not_cancellable",
                f"It is too late to cancel this: {row.state.label.lower()}.",
                advice="Look at how it stands now.",
                fresh=row,
            )
        if row.revision != revision:
            raise Conflict(
                "revision_stale",
                "Refresh to continue.",
                advice="It was edited since you opened it.",
                fresh=row,
            )
        if not await tx.raw.fetchval(_CANCEL, club_id, operation_id):
            raise AssertionError("A row that is locked and unsent can be cancelled.")
        await log(
            tx, club_id, actor, "operation.cancelled", "operation", operation_id, {"revision": revision}
        )
        tx.publish(changed(club_id))
        return await operation(tx, standing, actor, club_id, operation_id)
