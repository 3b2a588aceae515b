"""What follows an event or a creation that changed is gone through, a page a transaction (EVT-07).

It only makes prompt what claim, authorize and lateness judge for themselves (EVT-09), so a page that comes late does
no harm.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

import asyncpg

from lastcall.connections.signals import work
from lastcall.deadlines.noted import NotedWork, Notes
from lastcall.deadlines.owner import PAGE
from lastcall.deadlines.poison import Candidate
from lastcall.deadlines.signals import Signal
from lastcall.operations.schedules import late_at
from lastcall.operations.signals import LATE_PENDING, say_ended

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


class Fanouts(NotedWork):
    """Goes through what follows the first note. A note is due at once."""

    notes = Notes("operation_fanouts", "created_at", more=("subject_kind", "subject_id"))

    def candidate(self, row: asyncpg.Record) -> FanoutCandidate:
        place = super().candidate(row)
        return FanoutCandidate(
            place.club_id, place.id, place.position, row["subject_kind"], row["subject_id"]
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
