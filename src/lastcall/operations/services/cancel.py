"""Stop operations before they are sent: one, or what is left of a request."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from lastcall.clubs.activity import log
from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import Standing, require_staff
from lastcall.db.database import Database
from lastcall.errors import Conflict, NotAllowed
from lastcall.operations.machine import UNSENT, State
from lastcall.operations.queries import operation, request_operations
from lastcall.operations.signals import say_ended
from lastcall.operations.views import OperationView, may_change
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope

_LOCK = "select from operations where club_id = $1 and id = $2 for no key update"
_CANCEL = "select settle_unsent($1, $2, 'cancelled', 'cancelled_by_staff', lastcall_now())"
# What is sent already is no business of this, and a hello, which holds returned rows before sent ones, could otherwise
# wait for it and be waited for.
_LOCK_ALL = """
    select from operations
     where club_id = $1 and request_id = $2 and state in ('pending', 'claimed')
     order by id
       for no key update
"""
_CANCEL_ALL = """
    select count(*)
      from unnest($2::uuid[]) as r (id)
     where settle_unsent($1, r.id, 'cancelled', 'cancelled_by_staff', (select lastcall_now()))
"""


@dataclass(frozen=True)
class BatchCancelled:
    """How many of a request were cancelled just now, and how many are ``left``: sent, their outcome not known yet."""

    request_id: UUID
    cancelled: int
    left: int


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
        require_theirs(standing, actor, row, "cancel")
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
            raise revision_stale(row)
        if not await tx.raw.fetchval(_CANCEL, club_id, operation_id):
            raise AssertionError("A row that is locked and unsent can be cancelled.")
        await log(
            tx, club_id, actor, "operation.cancelled", "operation", operation_id, {"revision": revision}
        )
        await say_ended(tx, club_id)
        return await operation(tx, standing, actor, club_id, operation_id)


async def cancel_request(db: Database, actor: Actor, club_id: UUID, request_id: UUID) -> BatchCancelled:
    """Cancel everything of the request that is pending or claimed, all or nothing (EDT-08); what was sent stays. No
    revision is asked for: whatever is unsent now is meant.

    The actor is judged once, and each row by what was read of it then. Raises ``NotFound`` for a request that the
    reader may not see, ``NotAllowed`` when any of it is another person's and they lack
    ``manage_scheduled_actions``.
    """
    async with db.transaction() as tx:
        standing = await require_staff(tx, actor, club_id, scope=Scope.OPERATIONS)
        await tx.raw.fetch(_LOCK_ALL, club_id, request_id)
        rows = await request_operations(tx, standing, actor, club_id, request_id)
        unsent = [row for row in rows if row.state in UNSENT]
        for row in unsent:
            require_theirs(standing, actor, row, "cancel")
        left = sum(1 for row in rows if row.state is State.SUBMITTED)
        if unsent:
            count = await tx.raw.fetchval(_CANCEL_ALL, club_id, [row.id for row in unsent])
            if count != len(unsent):
                raise AssertionError("Rows that are locked and unsent can be cancelled.")
            details = {"kind": unsent[0].kind.name, "size": count}
            await log(tx, club_id, actor, "operations.cancelled", "operation_request", request_id, details)
            await say_ended(tx, club_id)
    return BatchCancelled(request_id, len(unsent), left)


def require_theirs(standing: Standing, actor: Actor, row: OperationView, verb: str) -> None:
    """Raises ``NotAllowed`` for another person's action without the permission for it (EDT-04, EDT-13)."""
    if not may_change(standing, actor, row.actor_id):
        raise NotAllowed(
            "permission_missing",
            f"What somebody else queued needs “{Permission.MANAGE_SCHEDULED_ACTIONS.label}” to {verb}.",
            advice="Ask the owner of the club for a role that has it.",
        )


def revision_stale(row: OperationView) -> Conflict:
    """The row was edited since the person saw it (EDT-02, EDT-07)."""
    return Conflict(
        "revision_stale", "Refresh to continue.", advice="It was edited since you opened it.", fresh=row
    )
