"""What is unsent of a connection's ended epoch is rejected, a page a transaction (WRK-11)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import asyncpg

from lastcall.deadlines.noted import NotedWork, Notes
from lastcall.deadlines.poison import Candidate
from lastcall.operations.signals import say_ended

PAGE = 50
"""Rows of one transaction: this clean-up is never urgent, so it holds little at a time."""

_CLEAN_UP = "select has_changed from clean_up_epoch($1, $2, $3, $4)"


@dataclass(frozen=True, slots=True)
class EpochCandidate(Candidate):
    """An epoch that ended. ``id`` is its connection's."""

    epoch: datetime


class EndedEpochs(NotedWork):
    """Cleans up the epoch that ended first. A note is due at once."""

    notes = Notes("ended_epochs", "ended_at", id="connection_id", more=("epoch",))

    def candidate(self, row: asyncpg.Record) -> EpochCandidate:
        place = super().candidate(row)
        return EpochCandidate(place.club_id, place.id, place.position, row["epoch"])

    async def step(self, candidate: Candidate) -> None:
        """Reject the next page; the note is gone with the last."""
        assert isinstance(candidate, EpochCandidate)
        async with self._db.transaction() as tx:
            if await tx.raw.fetchval(_CLEAN_UP, candidate.club_id, candidate.id, candidate.epoch, PAGE):
                await say_ended(tx, candidate.club_id)
