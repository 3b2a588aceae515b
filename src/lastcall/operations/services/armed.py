"""Deadlines that a hot step may create, said before it is sent.

A hot step is one function call and its own transaction. If its answer is lost, nobody would know of the
deadline it made; so the deadline is lowered first, at the earliest moment it can lie. It is a hint: one too
many costs a read.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.db.database import Database
from lastcall.deadlines.signals import Signal
from lastcall.deadlines.times import DatabaseTime, span, to_datetime, whole


class Armer:
    """Knows the database's time from one reading, and learns it anew from what every step brings back."""

    def __init__(self, db: Database, clock: Clock = SYSTEM_CLOCK) -> None:
        self._db = db
        self._clock = clock
        self._time = DatabaseTime()

    async def arm(self, owner: str, life: timedelta) -> None:
        """Tell ``owner`` of a deadline ``life`` from now, by the database's clock."""
        await self.learn()
        self._db.bus.deliver([Signal(owner, self.later(life))])

    async def learn(self) -> None:
        """Ask for the database's time, unless that is known already."""
        if not self._time.known:
            before = self._clock.boot()
            self.observe(await self._db.pool.fetchval("select lastcall_now()"), before)

    def observe(self, now: datetime, before: float) -> None:
        """Take in a *now* of the database that was asked for at ``before`` (boot time) and is here."""
        self._time.observe(now, before, self._clock.boot())

    def later(self, life: timedelta) -> datetime:
        """The database's time ``life`` from now; it was learned or observed before."""
        moment = self._time.at(whole(self._clock.boot()))
        assert moment is not None
        return to_datetime(moment + span(life))
