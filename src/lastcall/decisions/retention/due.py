"""The one place that derives when items are due, and says so to the owner that waits for it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import text

from lastcall.db.transaction import Transaction
from lastcall.deadlines.signals import Signal
from lastcall.decisions.deliveries.signals import RETENTION_REMINDER
from lastcall.decisions.retention.kind import Kind

_COMING = text("""
    select ceil_to_millisecond(cast(:activity_at as timestamptz) + make_interval(hours => 24 * c.retention_days))
    from clubs c
    where c.id = :club_id and c.state = 'active'
""")


async def announce(tx: Transaction, club_id: UUID, activity_at: datetime, *, kind: Kind) -> None:
    """Signal the deadline that an item of this activity time will have, before its row is there (ACC-01)."""
    deadline = await tx.scalar(_COMING, {"club_id": club_id, "activity_at": activity_at})
    if deadline is not None:
        tx.publish(Signal(kind.owner, deadline))


async def refresh(tx: Transaction, club_id: UUID, ids: Sequence[UUID], *, kind: Kind) -> None:
    """Derive ``archive_due_at`` of these items from the facts, and signal what that changes.

    Call it after any fact of the candidate rule changed, in the same transaction (ACC-19). A new earliest deadline
    travels with the signal and costs no read; one that went away or moved to later makes the owner read again.
    """
    # The routine is named by the kind, which is no text from outside.
    derive = text(f"select lowest, later, remind from refresh_{kind.name}(:club_id, :ids)")  # noqa: S608 - own name
    row = (await tx.execute(derive, {"club_id": club_id, "ids": list(ids)})).one()
    if row.lowest is not None:
        tx.publish(Signal(kind.owner, row.lowest))
    if row.later:
        tx.publish(Signal(kind.owner))
    if row.remind is not None:
        tx.publish(Signal(RETENTION_REMINDER, row.remind))


async def gone(tx: Transaction, _club_id: UUID, _ids: Sequence[UUID], *, kind: Kind) -> None:
    """Signal items that are about to be deleted, whose retention goes with them (ACC-16)."""
    tx.publish(Signal(kind.owner))
