"""How retention is written by hand and by other parts: under the lock of its item, versioned, logged and signalled.

The sweep writes the same in SQL (``archive_idle``).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeAlias
from uuid import UUID

from sqlalchemy import select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from lastcall.clubs.activity import System, log
from lastcall.db.bus import Hint
from lastcall.db.clock import NOW
from lastcall.db.transaction import Transaction
from lastcall.decisions.retention.due import refresh
from lastcall.decisions.retention.kind import Kind
from lastcall.decisions.retention.view import COLUMNS, RetentionView, retention_of, view
from lastcall.decisions.tables import Retention
from lastcall.errors import Conflict
from lastcall.people.actor import Actor

KEPT, UNKEPT = "retention.kept", "retention.unkept"
ARCHIVED, REVIVED = "retention.archived", "retention.revived"
"""What the activity log calls each change."""

Decide: TypeAlias = Callable[[RetentionView], dict[str, Any]]
"""What is to change in a row as it stands: nothing when it is so already."""


async def lock_item(tx: Transaction, club_id: UUID, kind: Kind, item_id: UUID) -> datetime:
    """Lock the item within its club and answer its true activity time. All that decide on retention do this first, so
    that each sees what the one before it decided. Raises the kind's ``NotFound``."""
    item = kind.table.c
    activity_at: datetime | None = await tx.scalar(
        select(item.activity_at)
        .where(item.club_id == club_id, item.id == item_id)
        .with_for_update(key_share=True)
    )
    if activity_at is None:
        raise kind.unknown()
    return activity_at


async def change(
    tx: Transaction,
    actor: Actor | System,
    club_id: UUID,
    kind: Kind,
    item_id: UUID,
    action: str,
    decide: Decide,
    *,
    seen_version: int | None,
) -> RetentionView:
    """Change the item's retention as ``decide`` says; answers it as it is then. A change that changes nothing raises
    no version and is not logged.

    ``seen_version`` None: whatever it is. Raises ``Conflict`` with the fresh row when it moved since, and the kind's
    ``NotFound``. Who may is the caller's question.
    """
    activity_at = await lock_item(tx, club_id, kind, item_id)
    before = await retention_of(tx, club_id, item_id)
    if seen_version is not None and before.version != seen_version:
        raise Conflict(
            "retention_moved",
            "Somebody changed this meanwhile.",
            advice="Look at it as it is now, and decide again.",
            fresh=before,
        )
    values = decide(before)
    if not values:
        return before
    after = await _write(tx, club_id, kind, item_id, activity_at, before.version + 1, values)
    if (after.archived_at is None) is not (before.archived_at is None):
        item = kind.table
        await tx.execute(
            update(item)
            .where(item.c.club_id == club_id, item.c.id == item_id)
            .values(is_archived=after.archived_at is not None)
        )
    await refresh(tx, club_id, [item_id], kind=kind)
    await log(tx, club_id, actor, action, kind.name, item_id, {"version": after.version})
    tx.publish(Hint(club_id, kind.topic))
    return after


async def _write(
    tx: Transaction,
    club_id: UUID,
    kind: Kind,
    item_id: UUID,
    activity_at: datetime,
    version: int,
    values: dict[str, Any],
) -> RetentionView:
    changed = {**values, "version": version, "source_activity_at": activity_at, "updated_at": NOW}
    statement = (
        upsert(Retention)
        .values(club_id=club_id, id=item_id, **{f"{kind.name}_id": item_id}, **changed)
        .on_conflict_do_update(index_elements=["club_id", "id"], set_=changed)
        .returning(*COLUMNS)
    )
    return view((await tx.execute(statement)).one())
