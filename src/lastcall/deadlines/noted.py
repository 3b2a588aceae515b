"""Long work that rows note: each row is a piece of it, and what is done first is the first by time and id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import asyncpg

from lastcall.db.database import Database
from lastcall.deadlines.owner import Position, Reading, behind
from lastcall.deadlines.poison import Candidate


@dataclass(frozen=True)
class Notes:
    """The rows of ``table`` that note work, with the columns that make a candidate. ``only`` is SQL over the row ``n``;
    ``more`` are columns that the step needs besides.

    All of it is literal text of the room that owns the table: a bound ``only`` would lose the partial index in a
    generic plan.
    """

    table: str
    time: str
    id: str = "id"
    club_id: str = "club_id"
    only: str = "true"
    more: tuple[str, ...] = ()

    @property
    def next_deadline(self) -> str:
        return f"""
            select (select lastcall_now()) as now, (
                select n.{self.time} from {self._behind}
                 order by n.{self.time}, n.{self.id}
                 limit 1
            ) as deadline
        """  # noqa: S608 - own literals

    @property
    def first(self) -> str:
        more = "".join(f", n.{name}" for name in self.more)
        return f"""
            select n.{self.club_id} as club_id, n.{self.id} as id, n.{self.time} as time{more} from {self._behind}
               and n.{self.time} <= (select lastcall_now())
             order by n.{self.time}, n.{self.id}
             limit 1
        """  # noqa: S608 - own literals

    @property
    def _behind(self) -> str:
        return f"""
            {self.table} n
             where {self.only} and ($1::timestamptz is null or (n.{self.time}, n.{self.id}) > ($1, $2::uuid))
        """


class NotedWork:
    """The parts of a paged owner that only read. A subclass says what notes its work, what a step is, and what its
    candidate is where that is more than the row's place."""

    notes: ClassVar[Notes]

    def __init__(self, db: Database) -> None:
        self._db = db

    async def next_deadline(self, beyond: Position | None = None) -> Reading:
        """The time of the first row."""
        row = await self._db.pool.fetchrow(self.notes.next_deadline, *behind(beyond))
        assert row is not None
        return Reading(row["now"], row["deadline"])

    async def first(self, beyond: Position | None) -> Candidate | None:
        """The first row whose time has come."""
        row = await self._db.pool.fetchrow(self.notes.first, *behind(beyond))
        return None if row is None else self.candidate(row)

    def candidate(self, row: asyncpg.Record) -> Candidate:
        """What a row stands for."""
        return Candidate(row["club_id"], row["id"], Position(row["time"], row["id"]))
