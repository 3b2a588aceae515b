"""Record by hand that one submission's outcome is unknown, where no deadline did (RCV-03). Nothing is sent again."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from lastcall.clubs.activity import COMMAND_LINE, log
from lastcall.db.database import Database
from lastcall.errors import Conflict
from lastcall.operations.host import HostView, host_view
from lastcall.operations.machine import State
from lastcall.operations.signals import say_ended

_RECOVER = "select recover_submission($1, $2, $3, $4)"


async def recover(
    db: Database, operation_id: UUID, nonce: UUID, expires_at: datetime, *, dry_run: bool = False
) -> HostView:
    """End the submission of that nonce and exact expiry as *Outcome unknown*, for the host's command line; answers the
    operation as it is then, or with ``dry_run`` as it is.

    Raises ``NotFound``, and ``Conflict`` when it is not submitted, when another submission is under way, or while its
    window is open: then a result can still come.
    """
    async with db.transaction() as tx:
        seen = await host_view(tx, operation_id)
        if dry_run or not await tx.raw.fetchval(_RECOVER, seen.club_id, operation_id, nonce, expires_at):
            _require_recoverable(seen, nonce, expires_at)
        if not dry_run:
            await log(tx, seen.club_id, COMMAND_LINE, "operation.recovered", "operation", operation_id)
            await say_ended(tx, seen.club_id)
        return await host_view(tx, operation_id)


def _require_recoverable(seen: HostView, nonce: UUID, expires_at: datetime) -> None:
    """What the database judges, in sentences."""
    if seen.row.state is not State.SUBMITTED:
        raise Conflict(
            "operation_not_submitted",
            f"There is nothing to recover: this action is {seen.row.state.label.lower()}.",
            advice="Only what was submitted, and of which nobody reported the outcome, is recovered.",
        )
    if (seen.nonce, seen.expires_at) != (nonce, expires_at):
        raise Conflict(
            "submission_other",
            "Nonce or expiry are not those of the submission that is open now.",
            advice="Look at it anew with `lastcall operation explain`.",
        )
    if seen.expires_at is None or seen.expires_at > seen.now:
        raise Conflict(
            "submission_window_open",
            "Its outcome can still be reported.",
            advice=f"Try again after {expires_at:%Y-%m-%d %H:%M:%S} UTC.",
        )
