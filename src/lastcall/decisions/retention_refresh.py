"""When a club itself changes (paused, resumed, archived, another day count), the deadlines of its pending items
follow in pages (ACC-06): the change only notes that they must, so that it stays small however many there are.

Until a page is through, its deadlines are old; that archives nothing wrongly, because the sweep trusts only the
facts.
"""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import delete, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from lastcall.access.tables import JoinRequest
from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.clubs.listeners import ClubChange
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.transaction import Transaction
from lastcall.deadlines.noted import NotedWork, Notes
from lastcall.deadlines.paged import PagedOwner
from lastcall.deadlines.poison import Candidate
from lastcall.deadlines.signals import Signal
from lastcall.decisions.retention import JOIN_REQUEST_RETENTION, refresh
from lastcall.decisions.tables import RetentionRefresh

RETENTION_REFRESH = "retention_refresh"  # the owner's name, which signals carry
ROWS = 500
"""Requests that one step walks at most, pending or not."""


async def club_changed(tx: Transaction, club_id: UUID, change: ClubChange) -> None:
    """Note that the club's deadlines are old, and signal. A deleted club's rows go, which ends them (ACC-16)."""
    if change is ClubChange.DELETED:
        tx.publish(Signal(JOIN_REQUEST_RETENTION))
        return
    anew = {"asked_at": NOW, "after_id": None}
    asked_at = await tx.scalar(
        upsert(RetentionRefresh)
        .values(club_id=club_id, **anew)
        .on_conflict_do_update(index_elements=["club_id"], set_=anew)
        .returning(RetentionRefresh.asked_at)
    )
    tx.publish(Signal(RETENTION_REFRESH, asked_at))


class RetentionRefreshes(NotedWork):
    """Refreshes the club that changed first. A refresh is due at once."""

    notes = Notes("retention_refreshes", "asked_at", id="club_id")

    async def step(self, candidate: Candidate) -> None:
        """Derive the next page. The note is locked, so a change that comes meanwhile waits and begins anew."""
        mine = (
            RetentionRefresh.club_id == candidate.club_id,
            RetentionRefresh.asked_at == candidate.position.time,
        )
        async with self._db.transaction() as tx:
            noted = (
                await tx.execute(
                    select(RetentionRefresh.after_id).where(*mine).with_for_update(key_share=True)
                )
            ).one_or_none()
            if noted is None:
                return
            page = (
                await tx.execute(
                    select(JoinRequest.id, JoinRequest.status)
                    .where(
                        JoinRequest.club_id == candidate.club_id,
                        JoinRequest.id > (noted.after_id or UUID(int=0)),
                    )
                    .order_by(JoinRequest.id)
                    .limit(ROWS)
                )
            ).all()
            await refresh(tx, candidate.club_id, [row.id for row in page if row.status == "pending_approval"])
            if len(page) == ROWS:
                await tx.execute(update(RetentionRefresh).where(*mine).values(after_id=page[-1].id))
            else:
                await tx.execute(delete(RetentionRefresh).where(*mine))


def retention_refresh_owner(db: Database, clock: Clock = SYSTEM_CLOCK) -> PagedOwner:
    """The owner to register with the scheduler."""
    return PagedOwner(RETENTION_REFRESH, RetentionRefreshes(db), clock)
