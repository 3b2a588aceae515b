"""Retention of join requests by hand, and the one place that derives when they are due.

Keeping and archiving say nothing about the request itself: it stays pending and can still be decided
(RET-13), and its new activity clears neither (RET-12).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, select, text
from sqlalchemy.dialects.postgresql import insert as upsert

from lastcall.access.policy import join_request_unknown, require_readable
from lastcall.access.requests import TOPIC
from lastcall.access.tables import JoinRequest
from lastcall.clubs.activity import log
from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import require
from lastcall.db.bus import Hint
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.transaction import Reader, Transaction
from lastcall.deadlines.signals import Signal
from lastcall.decisions.tables import Retention
from lastcall.errors import Conflict
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope

JOIN_REQUEST_RETENTION = "join_request_retention"  # the owner's name, which signals carry
_REFRESH = text("select lowest, later from refresh_join_requests(:club_id, :ids)")
_COMING = text("""
    select ceil_to_millisecond(cast(:activity_at as timestamptz) + make_interval(hours => 24 * c.retention_days))
    from clubs c
    where c.id = :club_id and c.state = 'active'
""")


@dataclass(frozen=True)
class RetentionView:
    """What was decided about an item's stay in view. ``version`` is 0 for an item that nobody acted on
    yet.
    """

    keep: bool
    archived_at: datetime | None
    archived_reason: str | None
    version: int
    archive_version: int


UNSEEN = RetentionView(keep=False, archived_at=None, archived_reason=None, version=0, archive_version=0)


async def announce(tx: Transaction, club_id: UUID, activity_at: datetime) -> None:
    """Signal the deadline that a request of this activity time will have, before its row is there (ACC-01)."""
    deadline = await tx.scalar(_COMING, {"club_id": club_id, "activity_at": activity_at})
    if deadline is not None:
        tx.publish(Signal(JOIN_REQUEST_RETENTION, deadline))


async def refresh(tx: Transaction, club_id: UUID, request_ids: Sequence[UUID]) -> None:
    """Derive ``archive_due_at`` of these requests from the facts, and signal what that changes.

    Call it after any fact of the candidate rule changed, in the same transaction. A new earliest deadline
    travels with the signal and costs no read; one that went away or moved to later makes the owner read
    again.
    """
    row = (await tx.execute(_REFRESH, {"club_id": club_id, "ids": list(request_ids)})).one()
    if row.lowest is not None:
        tx.publish(Signal(JOIN_REQUEST_RETENTION, row.lowest))
    if row.later:
        tx.publish(Signal(JOIN_REQUEST_RETENTION))


async def retention_of(tx: Reader, club_id: UUID, request_id: UUID) -> RetentionView:
    """The request's retention as it stands. Who may see it is the caller's question."""
    return _view(await _read(tx, club_id, request_id))


async def keep_join_request(
    db: Database, actor: Actor, club_id: UUID, request_id: UUID, *, keep: bool, seen_version: int
) -> RetentionView:
    """Keep a request from being archived by itself, or let it go again; answers its retention afterwards.

    Works on a request that nobody looked at yet (RET-16, ``seen_version`` 0). A value it has already
    changes nothing. Raises ``Conflict`` with the fresh row when it moved since the person saw it,
    ``NotFound`` for a request they may not see and ``NotAllowed`` without ``manage_retention``.
    """

    def decide(before: RetentionView) -> dict[str, Any]:
        return {} if before.keep == keep else {"keep": keep}

    action = "retention.kept" if keep else "retention.unkept"
    return await _change(db, actor, club_id, request_id, seen_version, action, decide)


async def archive_join_request(
    db: Database, actor: Actor, club_id: UUID, request_id: UUID, *, seen_version: int
) -> RetentionView:
    """Archive a request by hand, kept or not; errors and answer as for ``keep_join_request``.

    An archived one stays as it is.
    """

    def decide(before: RetentionView) -> dict[str, Any]:
        if before.archived_at is not None:
            return {}
        return {
            "archived_at": NOW,
            "archived_reason": "manual",
            "archived_by_kind": "person",
            "archived_by_person_id": actor.person_id,
            "archive_version": before.archive_version + 1,
        }

    return await _change(db, actor, club_id, request_id, seen_version, "retention.archived", decide)


async def _change(
    db: Database,
    actor: Actor,
    club_id: UUID,
    request_id: UUID,
    seen_version: int,
    action: str,
    decide: Callable[[RetentionView], dict[str, Any]],
) -> RetentionView:
    async with db.transaction() as tx:
        await require_readable(tx, actor, club_id, scope=Scope.ACCESS)
        await require(tx, actor, club_id, Permission.MANAGE_RETENTION, scope=Scope.ACCESS)
        activity_at = await _lock(tx, club_id, request_id)
        before = _view(await _read(tx, club_id, request_id))
        if before.version != seen_version:
            raise Conflict(
                "retention_moved",
                "Somebody changed this meanwhile.",
                advice="Look at it as it is now, and decide again.",
                fresh=before,
            )
        values = decide(before)
        if not values:
            return before
        after = await _write(tx, club_id, request_id, activity_at, before.version + 1, values)
        await refresh(tx, club_id, [request_id])
        await log(tx, club_id, actor, action, "join_request", request_id, {"version": after.version})
        tx.publish(Hint(club_id, TOPIC))
    return after


async def _lock(tx: Transaction, club_id: UUID, request_id: UUID) -> datetime:
    """Lock the source within its club and answer its true activity time. All that decide on retention do this
    first, so that each sees what the one before it decided."""
    activity_at: datetime | None = await tx.scalar(
        select(JoinRequest.activity_at)
        .where(JoinRequest.club_id == club_id, JoinRequest.id == request_id)
        .with_for_update(key_share=True)
    )
    if activity_at is None:
        raise join_request_unknown()
    return activity_at


_VIEW = (
    Retention.keep,
    Retention.archived_at,
    Retention.archived_reason,
    Retention.version,
    Retention.archive_version,
)


async def _read(tx: Reader, club_id: UUID, request_id: UUID) -> Row[Any] | None:
    found = await tx.execute(
        select(*_VIEW).where(Retention.club_id == club_id, Retention.join_request_id == request_id)
    )
    return found.one_or_none()


def _view(row: Row[Any] | None) -> RetentionView:
    return UNSEEN if row is None else RetentionView(**row._mapping)


async def _write(
    tx: Transaction,
    club_id: UUID,
    request_id: UUID,
    activity_at: datetime,
    version: int,
    values: dict[str, Any],
) -> RetentionView:
    changed = {**values, "version": version, "source_activity_at": activity_at, "updated_at": NOW}
    statement = (
        upsert(Retention)
        .values(club_id=club_id, id=new_id(), join_request_id=request_id, **changed)
        .on_conflict_do_update(index_elements=["club_id", "join_request_id"], set_=changed)
        .returning(*_VIEW)
    )
    return _view((await tx.execute(statement)).one())
