"""What follows an event or a creation that changed is gone through, a page a transaction (EVT-07).

It only makes prompt what claim, authorize and lateness judge for themselves (EVT-09), so a page that comes late does
no harm.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from lastcall.connections.signals import work
from lastcall.db.database import Database
from lastcall.deadlines.owner import PAGE, Position, Reading
from lastcall.deadlines.paged import behind
from lastcall.deadlines.poison import Candidate
from lastcall.deadlines.signals import Signal
from lastcall.operations.schedules import late_at
from lastcall.operations.signals import LATE_PENDING, say_ended

_NEXT = """
    select (select lastcall_now()) as now, (
        select f.created_at from operation_fanouts f
         where $1::timestamptz is null or (f.created_at, f.id) > ($1, $2::uuid)
         order by f.created_at, f.id
         limit 1
    ) as deadline
"""
_FIRST = """
    select f.club_id, f.id, f.created_at, f.subject_kind, f.subject_id from operation_fanouts f
     where $1::timestamptz is null or (f.created_at, f.id) > ($1, $2::uuid)
     order by f.created_at, f.id
     limit 1
"""
_PAGES = {
    "event": "select * from fan_out_event($1, $2, $3)",
    "creation": "select * from fan_out_creation($1, $2, $3)",
}
"""One page of each kind of subject. All answer in the same columns."""


@dataclass(frozen=True, slots=True)
class FanoutCandidate(Candidate):
    """A note of what is to be gone through."""

    subject_kind: str
    subject_id: UUID


class Fanouts:
    """The parts that the paged owner asks for. A note is due at once."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def next_deadline(self, beyond: Position | None = None) -> Reading:
        """When the first note was made."""
        row = await self._db.pool.fetchrow(_NEXT, *behind(beyond))
        assert row is not None
        return Reading(row["now"], row["deadline"])

    async def first(self, beyond: Position | None) -> FanoutCandidate | None:
        """The first note."""
        row = await self._db.pool.fetchrow(_FIRST, *behind(beyond))
        if row is None:
            return None
        return FanoutCandidate(
            row["club_id"],
            row["id"],
            Position(row["created_at"], row["id"]),
            row["subject_kind"],
            row["subject_id"],
        )

    async def step(self, candidate: Candidate) -> None:
        """Go through the next page; the note is gone with the last."""
        assert isinstance(candidate, FanoutCandidate)
        page = _PAGES[candidate.subject_kind]
        async with self._db.transaction() as tx:
            row = await tx.raw.fetchrow(page, candidate.club_id, candidate.subject_id, PAGE)
            assert row is not None
            if row["due_at"] is not None:
                tx.publish(Signal(LATE_PENDING, late_at(row["due_at"])))
            if row["ready_at"] is not None:
                for account_id in row["account_ids"]:
                    tx.publish(work(account_id, row["ready_at"]))
            if row["has_changed"]:
                await say_ended(tx, candidate.club_id)
