"""What the host's command line sees of operations: those of every club, and claims, which nobody else is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from lastcall.clubs.permissions import ALL_PERMISSIONS
from lastcall.clubs.policy import Standing
from lastcall.db.transaction import Reader
from lastcall.errors import NotFound
from lastcall.operations.explanation import Explanation, explain
from lastcall.operations.owners.lateness import late_order
from lastcall.operations.queries import operation
from lastcall.operations.revisions import Moment, timeline
from lastcall.operations.views import OperationView
from lastcall.people.actor import Actor

_HOST = Actor(UUID(int=0), "command line", is_operator=True)
_EVERYTHING = Standing(
    is_owner=True, is_staff=True, permissions=ALL_PERMISSIONS, provider_role_ids=frozenset()
)

# Club by club, each by its key: there is no index by id alone.
_FIND = """
    select c.id as club_id, c.slug, o.claim_nonce, o.claim_expires_at, lastcall_now() as now
      from clubs c
     cross join lateral (
           select o.claim_nonce, o.claim_expires_at from operations o where o.club_id = c.id and o.id = $1) as o
"""
_LATE = {
    state: f"select count(*) from operations o where o.state = '{state}' and {late_order(state).is_due}"  # noqa: S608
    for state in ("pending", "claimed")
}


@dataclass(frozen=True)
class HostView:
    """One operation with its club's address, and the claim or submission that is under way or was the last one."""

    club_id: UUID
    club_slug: str
    row: OperationView
    explanation: Explanation
    happened: Sequence[Moment]
    nonce: UUID | None
    expires_at: datetime | None
    now: datetime


async def host_view(tx: Reader, operation_id: UUID) -> HostView:
    """The operation, for whoever runs the server. Raises ``NotFound``."""
    found = await tx.raw.fetchrow(_FIND, operation_id)
    if found is None:
        raise NotFound(
            "operation_unknown",
            "There is no such action.",
            advice="Copy its id from the end of its page's address.",
        )
    club_id = found["club_id"]
    row = await operation(tx, _EVERYTHING, _HOST, club_id, operation_id)
    return HostView(
        club_id=club_id,
        club_slug=found["slug"],
        row=row,
        explanation=explain(row, found["now"]),
        happened=await timeline(tx, _EVERYTHING, _HOST, club_id, operation_id),
        nonce=found["claim_nonce"],
        expires_at=found["claim_expires_at"],
        now=found["now"],
    )


async def late_counts(tx: Reader) -> dict[str, int]:
    """How many unsent operations are late now, of all clubs, by their state."""
    return {state: await tx.raw.fetchval(statement) for state, statement in _LATE.items()}
