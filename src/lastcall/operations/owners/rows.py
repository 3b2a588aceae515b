"""How the owners of this room find due rows: each walks one partial index over all clubs, and takes no locks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

import asyncpg

from lastcall.db.database import Database
from lastcall.deadlines.owner import Position, Reading
from lastcall.deadlines.poison import Candidate

_BEFORE_ALL = Position(datetime(1, 1, 1, tzinfo=UTC), UUID(int=0))


@dataclass(frozen=True)
class Order:
    """One order of one state. ``is_due`` and ``deadline`` are SQL over the row's ``time``.

    All of it is literal text of this room: a bound state would lose the partial index in a generic plan.
    """

    state: str
    time: str
    is_due: str
    deadline: str

    @property
    def next_deadline(self) -> str:
        return self._next("")

    @property
    def next_deadline_beyond(self) -> str:
        return self._next(f"and (o.{self.time}, o.id) > ($1::timestamptz, $2::uuid)")

    @property
    def boundary(self) -> str:
        return f"""
            select o.{self.time} as time, o.id
              from operations o
             where o.state = '{self.state}' and {self.is_due}
             order by o.{self.time} desc, o.id desc
             limit 1
        """  # noqa: S608 - own literals

    @property
    def page(self) -> str:
        return f"""
            select o.club_id, o.id, o.{self.time} as time, o.claim_nonce
              from operations o
             where o.state = '{self.state}'
               and (o.{self.time}, o.id) > ($1::timestamptz, $2::uuid)
               and (o.{self.time}, o.id) <= ($3::timestamptz, $4::uuid)
             order by o.{self.time}, o.id
             limit $5
        """  # noqa: S608 - own literals

    def _next(self, beyond: str) -> str:
        return f"""
            select (select lastcall_now()) as now, (
                select {self.deadline}
                  from operations o
                 where o.state = '{self.state}' {beyond}
                 order by o.{self.time}, o.id
                 limit 1) as deadline
        """  # noqa: S608 - own literals


class DueRows:
    """The parts of an owner that only read."""

    def __init__(self, db: Database, order: Order) -> None:
        self._db = db
        self._order = order

    async def next_deadline(self, beyond: Position | None = None) -> Reading:
        """The earliest deadline, or the earliest behind ``beyond``."""
        if beyond is None:
            row = await self._db.pool.fetchrow(self._order.next_deadline)
        else:
            row = await self._db.pool.fetchrow(self._order.next_deadline_beyond, beyond.time, beyond.id)
        if row is None:
            raise AssertionError("The statement answers exactly one row.")
        return Reading(row["now"], row["deadline"])

    async def boundary(self) -> Position | None:
        """The last row that is due now."""
        row = await self._db.pool.fetchrow(self._order.boundary)
        return None if row is None else Position(row["time"], row["id"])

    async def page_rows(self, after: Position | None, upto: Position, limit: int) -> list[asyncpg.Record]:
        """Due rows behind ``after`` up to and with ``upto``."""
        start = after or _BEFORE_ALL
        return await self._db.pool.fetch(self._order.page, start.time, start.id, upto.time, upto.id, limit)


@dataclass(frozen=True, slots=True)
class ClaimCandidate(Candidate):
    """A row whose claim or submission ran out. ``position.time`` is the exact expiry that was seen."""

    nonce: UUID


def claim_candidates(rows: list[asyncpg.Record]) -> list[ClaimCandidate]:
    """The rows of a page, each with the claim that was seen."""
    return [
        ClaimCandidate(row["club_id"], row["id"], Position(row["time"], row["id"]), row["claim_nonce"])
        for row in rows
    ]
