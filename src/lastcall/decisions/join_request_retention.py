"""The owner of the deadline at which a join request that nobody decided is archived.

It finds what is due by the derived ``archive_due_at`` and trusts only the facts, read again under the row's
lock. It knows no provider and asks none (RET-23).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

from lastcall.access.requests import TOPIC
from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.db.bus import Hint
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.deadlines.owner import Position, Reading
from lastcall.deadlines.poison import Candidate
from lastcall.deadlines.sweep import SweepOwner
from lastcall.decisions.retention import JOIN_REQUEST_RETENTION

# Literals, not parameters: a bound state would lose the partial index in a generic plan. Each is one probe
# or one range of join_requests_archive_due_at_idx, which holds what is due some day and nothing else.
NEXT_DEADLINE = """
    select
        (select lastcall_now()) as now,
        (
            select ceil_to_millisecond(j.archive_due_at)
            from join_requests j
            where j.status = 'pending_approval' and j.archive_due_at is not null
            order by j.archive_due_at, j.id
            limit 1
        ) as deadline
"""
NEXT_DEADLINE_BEYOND = """
    select
        (select lastcall_now()) as now,
        (
            select ceil_to_millisecond(j.archive_due_at)
            from join_requests j
            where j.status = 'pending_approval'
              and j.archive_due_at is not null
              and (j.archive_due_at, j.id) > ($1::timestamptz, $2::uuid)
            order by j.archive_due_at, j.id
            limit 1
        ) as deadline
"""
BOUNDARY = """
    select j.archive_due_at, j.id
    from join_requests j
    where j.status = 'pending_approval' and j.archive_due_at <= (select lastcall_now())
    order by j.archive_due_at desc, j.id desc
    limit 1
"""
PAGE = """
    select j.club_id, j.id, j.archive_due_at
    from join_requests j
    where j.status = 'pending_approval'
      and j.archive_due_at is not null
      and (j.archive_due_at, j.id) > ($1::timestamptz, $2::uuid)
      and (j.archive_due_at, j.id) <= ($3::timestamptz, $4::uuid)
    order by j.archive_due_at, j.id
    limit $5
"""
SETTLE = "select settle_join_request($1, $2, $3, $4)"

_BEFORE_ALL = Position(datetime(1, 1, 1, tzinfo=UTC), UUID(int=0))


class JoinRequestRetention:
    """Finds join requests that are due and archives each in a transaction of its own."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def next_deadline(self, beyond: Position | None = None) -> Reading:
        if beyond is None:
            row = await self._db.pool.fetchrow(NEXT_DEADLINE)
        else:
            row = await self._db.pool.fetchrow(NEXT_DEADLINE_BEYOND, beyond.time, beyond.id)
        assert row is not None
        return Reading(now=row["now"], deadline=row["deadline"])

    async def boundary(self) -> Position | None:
        row = await self._db.pool.fetchrow(BOUNDARY)
        return None if row is None else Position(row["archive_due_at"], row["id"])

    async def page(self, after: Position | None, upto: Position, limit: int) -> Sequence[Candidate]:
        start = after or _BEFORE_ALL
        rows = await self._db.pool.fetch(PAGE, start.time, start.id, upto.time, upto.id, limit)
        return [
            Candidate(row["club_id"], row["id"], Position(row["archive_due_at"], row["id"])) for row in rows
        ]

    async def settle(self, candidate: Candidate) -> None:
        outcome = await self._db.pool.fetchval(SETTLE, candidate.club_id, candidate.id, new_id(), new_id())
        if outcome == "archived":
            self._db.bus.deliver([Hint(candidate.club_id, TOPIC)])


def join_request_retention(db: Database, clock: Clock = SYSTEM_CLOCK) -> SweepOwner:
    """The owner as the scheduler takes it."""
    return SweepOwner(JOIN_REQUEST_RETENTION, JoinRequestRetention(db), clock)
