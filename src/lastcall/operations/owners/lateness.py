"""Unsent work later than due plus 15 minutes is missed (RCV-04), whatever the collector does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from lastcall.connections.signals import work
from lastcall.db.database import Database
from lastcall.deadlines.due_rows import DueRows, Order
from lastcall.deadlines.poison import Candidate
from lastcall.deadlines.signals import Signal
from lastcall.operations.schedules import late_at
from lastcall.operations.signals import LATE_PENDING, say_ended

_MISS = "select * from miss_late($1::uuid[], $2::uuid[])"


def late_order(state: Literal["pending", "claimed"]) -> Order:
    """By (due time, id), not by creation: the rows due first are missed first, and a row that an edit moved
    behind the cursor is late later or not at all, so the next deadline read finds it (RCV-06).
    """
    return Order(
        "operations",
        "due_at",
        f"state = '{state}'",
        is_due="due_at < (select lastcall_now()) - operation_grace()",
        deadline="late_at(due_at)",
    )


class Late(DueRows):
    """One hundred rows a transaction. Each row is judged by what it and its event say then; a submitted one is passed
    over. What the event moved to a later time waits again.
    """

    def __init__(self, db: Database, state: Literal["pending", "claimed"]) -> None:
        super().__init__(db, late_order(state))
        self.settled: Counter[str] = Counter()
        """How many this object has settled so far, by the state in which that left them."""

    async def settle(self, candidates: Sequence[Candidate]) -> None:
        clubs = [candidate.club_id for candidate in candidates]
        async with self._db.transaction() as tx:
            rows = await tx.raw.fetch(_MISS, clubs, [candidate.id for candidate in candidates])
            for row in rows:
                if row["state"] == "pending":
                    tx.publish(Signal(LATE_PENDING, late_at(row["due_at"])))
                    if row["ready_at"] is not None:
                        tx.publish(work(row["account_id"], row["ready_at"]))
            for club_id in {row["club_id"] for row in rows}:
                await say_ended(tx, club_id)
        self.settled.update(row["state"] for row in rows)
