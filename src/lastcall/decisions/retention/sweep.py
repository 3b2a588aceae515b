"""The owner of the deadline at which an item that nobody decided is archived: one sweep for every kind (RET-15).

It finds what is due by the derived ``archive_due_at`` and trusts only the facts, read again under the row's lock. It
knows no provider and asks none (RET-23).
"""

from __future__ import annotations

from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.db.bus import Hint
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.deadlines.due_rows import DueRows
from lastcall.deadlines.poison import Candidate
from lastcall.deadlines.signals import Signal
from lastcall.deadlines.sweep import SweepOwner
from lastcall.decisions.deliveries.signals import RETENTION_DIGEST, for_agent
from lastcall.decisions.retention.kind import Kind


class DueItems(DueRows):
    """Finds items of one kind that are due, and archives each in a transaction of its own."""

    def __init__(self, db: Database, kind: Kind) -> None:
        super().__init__(db, kind.order)
        self._kind = kind
        self.archived = 0
        """How many this object has archived so far."""
        self._settle = f"select outcome, agent from settle_{kind.name}($1, $2, $3)"  # noqa: S608 - own name

    async def settle(self, candidate: Candidate) -> None:
        """Archive it, or set right when it is due."""
        row = await self._db.pool.fetchrow(self._settle, candidate.club_id, candidate.id, new_id())
        assert row is not None
        if row["outcome"] == "archived":
            self.archived += 1
            self._db.bus.deliver([Hint(candidate.club_id, self._kind.topic), Signal(RETENTION_DIGEST)])
        if row["agent"] is not None:
            self._db.bus.deliver([for_agent(candidate.club_id, row["agent"])])


def retention_owner(db: Database, kind: Kind, clock: Clock = SYSTEM_CLOCK) -> SweepOwner:
    """The owner of that kind as the scheduler takes it."""
    return SweepOwner(kind.owner, DueItems(db, kind), clock)
