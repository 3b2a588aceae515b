"""What is unsent of a connection's ended epoch is rejected, a page a transaction (WRK-11)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lastcall.db.database import Database
from lastcall.deadlines.owner import Position, Reading
from lastcall.deadlines.paged import behind
from lastcall.deadlines.poison import Candidate
from lastcall.operations.signals import say_ended

PAGE = 50
"""Rows of one transaction: this clean-up is never urgent, so it holds little at a time."""

_NEXT = """
    select (select lastcall_now()) as now, (
        select e.ended_at from ended_epochs e
         where $1::timestamptz is null or (e.ended_at, e.connection_id) > ($1, $2::uuid)
         order by e.ended_at, e.connection_id
         limit 1
    ) as deadline
"""
_FIRST = """
    select e.club_id, e.connection_id, e.epoch, e.ended_at from ended_epochs e
     where $1::timestamptz is null or (e.ended_at, e.connection_id) > ($1, $2::uuid)
     order by e.ended_at, e.connection_id, e.epoch
     limit 1
"""
_CLEAN_UP = "select has_changed from clean_up_epoch($1, $2, $3, $4)"


@dataclass(frozen=True, slots=True)
class EpochCandidate(Candidate):
    """An epoch that ended. ``id`` is its connection's."""

    epoch: datetime


class EndedEpochs:
    """The parts that the paged owner asks for. A note is due at once."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def next_deadline(self, beyond: Position | None = None) -> Reading:
        """When the first of them ended."""
        row = await self._db.pool.fetchrow(_NEXT, *behind(beyond))
        assert row is not None
        return Reading(row["now"], row["deadline"])

    async def first(self, beyond: Position | None) -> EpochCandidate | None:
        """The one that ended first."""
        row = await self._db.pool.fetchrow(_FIRST, *behind(beyond))
        if row is None:
            return None
        return EpochCandidate(
            row["club_id"],
            row["connection_id"],
            Position(row["ended_at"], row["connection_id"]),
            row["epoch"],
        )

    async def step(self, candidate: Candidate) -> None:
        """Reject the next page; the note is gone with the last."""
        assert isinstance(candidate, EpochCandidate)
        async with self._db.transaction() as tx:
            if await tx.raw.fetchval(_CLEAN_UP, candidate.club_id, candidate.id, candidate.epoch, PAGE):
                await say_ended(tx, candidate.club_id)
