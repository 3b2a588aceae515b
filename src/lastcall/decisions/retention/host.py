"""Retention as the host's command line sees it: over all clubs, by the index and by the facts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import select, text, tuple_

from lastcall.clubs.tables import Club
from lastcall.db.clock import NOW
from lastcall.db.cursor import Cursor
from lastcall.db.transaction import Reader
from lastcall.decisions.retention.explain import Explanation, explain
from lastcall.decisions.retention.kind import Kind
from lastcall.decisions.retention.kinds import KINDS, kind_named
from lastcall.decisions.tables import RetentionRefresh


@dataclass(frozen=True)
class Scheduled:
    """One item that is found at ``found_at``, the time of the index, and what the facts say of it."""

    club: str
    found_at: datetime
    explanation: Explanation

    @property
    def cursor(self) -> Cursor:
        return Cursor(self.found_at, self.explanation.id)


async def scheduled(
    tx: Reader, kind: Kind, *, upto: datetime | None = None, after: Cursor | None = None, limit: int = 100
) -> list[Scheduled]:
    """What of this kind will be archived by itself in all clubs, the earliest first; with ``upto`` no later than
    then."""
    item = kind.table.c
    page = (
        select(item.club_id, item.id, item.archive_due_at, Club.slug)
        .join(Club, Club.id == item.club_id)
        .where(text(f"status = '{kind.pending}'"), item.archive_due_at.is_not(None))
        .order_by(item.archive_due_at, item.id)
        .limit(limit)
    )
    if upto is not None:
        page = page.where(item.archive_due_at <= upto)
    if after is not None:
        page = page.where(tuple_(item.archive_due_at, item.id) > tuple_(after.time, after.id))
    rows = (await tx.execute(page)).all()
    ids: dict[UUID, list[UUID]] = defaultdict(list)
    for row in rows:
        ids[row.club_id].append(row.id)
    facts = {club_id: await explain(tx, club_id, kind, found) for club_id, found in ids.items()}
    return [
        Scheduled(row.slug, row.archive_due_at, facts[row.club_id][row.id])
        for row in rows
        if row.id in facts[row.club_id]
    ]


@dataclass(frozen=True)
class NextDue:
    """What retention waits for: by the name of its owner, when it has something to do; null for nothing."""

    now: datetime
    deadlines: dict[str, datetime | None]
    refreshes: int
    """Clubs that changed and whose items have not followed yet."""


async def next_due(tx: Reader) -> NextDue:
    """What a server that starts now would read."""
    deadlines = {}
    for kind in KINDS.values():
        row = await tx.raw.fetchrow(kind.order.next_deadline)
        assert row is not None
        deadlines[kind.owner] = row["deadline"]
    clubs = (await tx.execute(select(RetentionRefresh.club_id))).all()
    return NextDue(await tx.scalar(select(NOW)), deadlines, len(clubs))


def kinds_named(name: str | None) -> Sequence[Kind]:
    """That kind, or all."""
    return [*KINDS.values()] if name is None else [kind_named(name)]
