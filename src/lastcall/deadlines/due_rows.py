"""How an owner finds its due rows: it walks one partial index over all clubs, and takes no locks."""

from __future__ import annotations

from collections.abc import Sequence
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
    """The rows of ``table`` that ``where`` leaves, by ``time`` and then ``id``, in the order of an index on both.

    All of it is literal text of the room that owns the table: a bound state would lose the partial index in a
    generic plan. ``is_due`` (now is at least ``time`` unless told) and ``deadline`` (``time`` itself unless told, and
    never before the row is due) are SQL over the row. ``is_nullable``: rows without a time are never due, and the index
    leaves them out. ``more`` are columns that a page has beside the row's key.
    """

    table: str
    time: str
    where: str
    id: str = "id"
    is_due: str | None = None
    deadline: str | None = None
    is_nullable: bool = False
    more: tuple[str, ...] = ()

    @property
    def next_deadline(self) -> str:
        return self._next("")

    @property
    def next_deadline_beyond(self) -> str:
        return self._next(f"and ({self._key}) > ($1::timestamptz, $2::uuid)")

    @property
    def boundary(self) -> str:
        is_due = self.is_due or f"{self.time} <= (select lastcall_now())"
        return f"""
            select {self.time} as time, {self.id} as id
              from {self.table}
             where {self.where} and {is_due}
             order by {self.time} desc, {self.id} desc
             limit 1
        """  # noqa: S608 - own literals

    @property
    def page(self) -> str:
        more = "".join(f", {column}" for column in self.more)
        return f"""
            select club_id, {self.id} as id, {self.time} as time{more}
              from {self.table}
             where {self._where}
               and ({self._key}) > ($1::timestamptz, $2::uuid)
               and ({self._key}) <= ($3::timestamptz, $4::uuid)
             order by {self._key}
             limit $5
        """  # noqa: S608 - own literals

    @property
    def _where(self) -> str:
        # Not in the boundary: there the comparison says it, and a planner that is told twice expects so few rows that
        # it collects and sorts them.
        return f"{self.where} and {self.time} is not null" if self.is_nullable else self.where

    @property
    def _key(self) -> str:
        return f"{self.time}, {self.id}"

    def _next(self, beyond: str) -> str:
        return f"""
            select (select lastcall_now()) as now, (
                select {self.deadline or self.time}
                  from {self.table}
                 where {self._where} {beyond}
                 order by {self._key}
                 limit 1) as deadline
        """  # noqa: S608 - own literals


class DueRows:
    """The parts of an owner that only read; whoever settles the rows adds how."""

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

    async def page(self, after: Position | None, upto: Position, limit: int) -> Sequence[Candidate]:
        """Due rows behind ``after`` up to and with ``upto``."""
        start = after or _BEFORE_ALL
        rows = await self._db.pool.fetch(self._order.page, start.time, start.id, upto.time, upto.id, limit)
        return [self.candidate(row) for row in rows]

    def candidate(self, row: asyncpg.Record) -> Candidate:
        """What a row of a page stands for."""
        return Candidate(row["club_id"], row["id"], Position(row["time"], row["id"]))
