"""Unsent work later than due plus 15 minutes is missed (RCV-04), whatever the collector does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from lastcall.db.database import Database
from lastcall.deadlines.owner import Position
from lastcall.deadlines.poison import Candidate
from lastcall.operations.owners.rows import DueRows, Order
from lastcall.operations.signals import changed

_MISS = "select distinct club_id from miss_late($1::uuid[], $2::uuid[])"


def late_order(state: Literal["pending", "claimed"]) -> Order:
    """By (due time, id), not by creation: the rows due first are missed first, and a row that an edit moved
    behind the cursor is late later or not at all, so the next deadline read finds it (RCV-06).
    """
    return Order(
        state=state,
        time="due_at",
        is_due="o.due_at < (select lastcall_now()) - operation_grace()",
        deadline="late_at(o.due_at)",
    )


class Late(DueRows):
    """One hundred rows a transaction. Each row is judged by what it says then; a submitted one is passed
    over.
    """

    def __init__(self, db: Database, state: Literal["pending", "claimed"]) -> None:
        super().__init__(db, late_order(state))

    async def page(self, after: Position | None, upto: Position, limit: int) -> Sequence[Candidate]:
        rows = await self.page_rows(after, upto, limit)
        return [Candidate(row["club_id"], row["id"], Position(row["time"], row["id"])) for row in rows]

    async def settle(self, candidates: Sequence[Candidate]) -> None:
        clubs = [candidate.club_id for candidate in candidates]
        missed = await self._db.pool.fetch(_MISS, clubs, [candidate.id for candidate in candidates])
        self._db.bus.deliver([changed(row["club_id"]) for row in missed])
