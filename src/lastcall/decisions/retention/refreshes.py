"""When a club itself changes (paused, resumed, archived, another day count), the deadlines of its pending items
follow in pages (ACC-06): the change only notes that they must, so that it stays small however many there are.

Until a page is through, its deadlines are old; that archives nothing wrongly, because the sweep trusts only the
facts.
"""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import delete, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.clubs.listeners import ClubChange
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.transaction import Transaction
from lastcall.deadlines.noted import NotedWork, Notes
from lastcall.deadlines.paged import PagedOwner
from lastcall.deadlines.poison import Candidate
from lastcall.deadlines.signals import Signal
from lastcall.decisions.retention.due import refresh
from lastcall.decisions.retention.kind import Kind
from lastcall.decisions.retention.kinds import KINDS
from lastcall.decisions.tables import RetentionRefresh

RETENTION_REFRESH = "retention_refresh"  # the owner's name, which signals carry
ROWS = 500
"""Items that one step walks at most, pending or not."""


async def club_changed(tx: Transaction, club_id: UUID, change: ClubChange) -> None:
    """Note that the club's deadlines are old, and signal. A deleted club's rows go, which ends them (ACC-16)."""
    if change is ClubChange.DELETED:
        for kind in KINDS.values():
            tx.publish(Signal(kind.owner))
        return
    anew = {"asked_at": NOW, "kind": None, "after_id": None}
    asked_at = await tx.scalar(
        upsert(RetentionRefresh)
        .values(club_id=club_id, **anew)
        .on_conflict_do_update(index_elements=["club_id"], set_=anew)
        .returning(RetentionRefresh.asked_at)
    )
    tx.publish(Signal(RETENTION_REFRESH, asked_at))


class RetentionRefreshes(NotedWork):
    """Refreshes the club that changed first, at once: a page is of one kind, and the kinds follow each other."""

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
                    select(RetentionRefresh.kind, RetentionRefresh.after_id)
                    .where(*mine)
                    .with_for_update(key_share=True)
                )
            ).one_or_none()
            if noted is None:
                return
            kind = KINDS[noted.kind or next(iter(KINDS))]
            last = await _page(tx, candidate.club_id, kind, noted.after_id)
            following = kind.name if last is not None else _after(kind)
            if following is None:
                await tx.execute(delete(RetentionRefresh).where(*mine))
            else:
                await tx.execute(update(RetentionRefresh).where(*mine).values(kind=following, after_id=last))


async def _page(tx: Transaction, club_id: UUID, kind: Kind, after: UUID | None) -> UUID | None:
    """Derive a page of one kind; the id of its last item, or None when the kind is through."""
    item = kind.table.c
    page = (
        await tx.execute(
            select(item.id, item.status)
            .where(item.club_id == club_id, item.id > (after or UUID(int=0)))
            .order_by(item.id)
            .limit(ROWS)
        )
    ).all()
    pending = [row.id for row in page if row.status == kind.pending]
    await refresh(tx, club_id, pending, kind=kind)
    return page[-1].id if len(page) == ROWS else None


def _after(kind: Kind) -> str | None:
    names = [*KINDS, None]
    return names[names.index(kind.name) + 1]


def retention_refresh_owner(db: Database, clock: Clock = SYSTEM_CLOCK) -> PagedOwner:
    """The owner to register with the scheduler."""
    return PagedOwner(RETENTION_REFRESH, RetentionRefreshes(db), clock)
