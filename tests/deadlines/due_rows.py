"""A table of due rows that means nothing, and a source over it that follows the house's rules."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from lastcall.db.connect import Connection
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.deadlines.owner import Position, Reading
from lastcall.deadlines.poison import Candidate

CLUB = UUID(int=7)

TABLE = """
create table due_rows (
    club_id uuid not null, id uuid not null, due_at timestamptz, settled int not null default 0,
    settled_at timestamptz, is_bad boolean not null default false, primary key (club_id, id)
);
create index due_rows_due on due_rows (due_at, id) where due_at is not null;
"""


class DueRows:
    """``settle`` takes the row's lock, judges in a new statement, and fails for a bad row."""

    lock = "for no key update"

    def __init__(self, db: Database) -> None:
        self.db = db
        self.attempts: list[UUID] = []
        self.pages: list[int] = []

    async def boundary(self) -> Position | None:
        row = await self.db.pool.fetchrow(
            """select due_at, id from due_rows where due_at <= (select lastcall_now())
               order by due_at desc, id desc limit 1"""
        )
        return None if row is None else Position(row["due_at"], row["id"])

    async def page(self, after: Position | None, upto: Position, limit: int) -> Sequence[Candidate]:
        rows = await self.db.pool.fetch(
            """select club_id, id, due_at from due_rows
               where due_at is not null and ($1::timestamptz is null or (due_at, id) > ($1, $2))
                 and (due_at, id) <= ($3, $4)
               order by due_at, id limit $5""",
            after and after.time,
            after and after.id,
            upto.time,
            upto.id,
            limit,
        )
        self.pages.append(len(rows))
        return [Candidate(row["club_id"], row["id"], Position(row["due_at"], row["id"])) for row in rows]

    async def settle(self, candidate: Candidate) -> None:
        self.attempts.append(candidate.id)
        async with self.db.transaction() as tx:
            await tx.raw.fetch(
                f"select 1 from due_rows where club_id = $1 and id = $2 {self.lock}",
                candidate.club_id,
                candidate.id,
            )
            await self.judge(tx.raw, candidate)

    async def judge(self, raw: Connection, candidate: Candidate) -> None:
        is_bad = await raw.fetchval(
            "select is_bad from due_rows where club_id = $1 and id = $2", candidate.club_id, candidate.id
        )
        if is_bad:
            raise RuntimeError("bad row")
        await raw.execute(
            """update due_rows set due_at = null, settled = settled + 1, settled_at = lastcall_now()
               where club_id = $1 and id = $2 and due_at <= (select lastcall_now())""",
            candidate.club_id,
            candidate.id,
        )

    async def next_deadline(self, beyond: Position | None = None) -> Reading:
        row = await self.db.pool.fetchrow(
            """select lastcall_now() as now, (
                 select date_trunc('milliseconds', due_at + interval '999 microseconds') from due_rows
                 where due_at is not null and ($1::timestamptz is null or (due_at, id) > ($1, $2))
                 order by due_at, id limit 1) as deadline""",
            beyond and beyond.time,
            beyond and beyond.id,
        )
        assert row is not None
        return Reading(row["now"], row["deadline"])

    # What tests do to the rows.

    async def add(self, *due: datetime, is_bad: bool = False) -> list[UUID]:
        ids = [new_id() for _ in due]
        async with self.db.pool.acquire() as connection:
            await connection.executemany(
                "insert into due_rows (club_id, id, due_at, is_bad) values ($1, $2, $3, $4)",
                [(CLUB, row, moment, is_bad) for row, moment in zip(ids, due, strict=True)],
            )
        return ids

    async def overdue(
        self, count: int, *, by: timedelta = timedelta(hours=1), is_bad: bool = False
    ) -> list[UUID]:
        """That many rows, all due in the same microsecond."""
        now: datetime = await self.db.pool.fetchval("select lastcall_now()")
        return await self.add(*[now - by] * count, is_bad=is_bad)

    async def heal(self) -> None:
        await self.db.pool.execute("update due_rows set is_bad = false")

    async def settled(self) -> dict[UUID, int]:
        rows = await self.db.pool.fetch("select id, settled from due_rows where settled > 0")
        return {row["id"]: row["settled"] for row in rows}


class DueBatches(DueRows):
    """The same rows, a page in one transaction."""

    async def settle(self, candidates: Sequence[Candidate]) -> None:  # type: ignore[override]
        self.attempts += [candidate.id for candidate in candidates]
        async with self.db.transaction() as tx:
            await tx.raw.fetch(
                f"select 1 from due_rows where id = any($1) order by id {self.lock}",
                [candidate.id for candidate in candidates],
            )
            for candidate in candidates:
                await self.judge(tx.raw, candidate)
