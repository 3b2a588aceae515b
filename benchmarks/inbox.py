"""The inbox over a long past: its first page and all its counts, with 16 400 runs of agents, 40 000 join requests that
are decided and 5 000 items that wait, against a tenth of it. As the page reads it, through the queries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import datetime
from typing import Any, cast

from benchmarks.harness import LARGE, Figure, Server, alternating, create, database, server
from benchmarks.world import CLUB, OWNER, PERSON, add_clubs, loader, row_id
from lastcall.clubs.permissions import ALL_PERMISSIONS
from lastcall.db.database import Database
from lastcall.decisions.inbox.item import MOST_COUNTED, Shelf
from lastcall.decisions.inbox.queries import Wanted, inbox_counts, inbox_page
from lastcall.decisions.inbox.reach import Reach
from lastcall.decisions.registration import register

RUNS, DECIDED, WAITING = 16_400, 40_000, 5_000
TENTH = 10
PAGE = 25
CALLS = 60
AT_MOST = 1.5
STATEMENTS = 2

_INVITED = """
insert into invites (club_id, id, token_hash, invited_by, expires_at)
select row_id($1, 1), row_id(100, n), sha256(n::text::bytea), row_id($2, 1), lastcall_now()
  from generate_series(1, $3::int) n
"""
_ASKED = """
insert into join_requests (club_id, id, invite_id, subject_kind, agent_name, status, activity_at, decided_at)
select row_id($1, 1), row_id(101, n), row_id(100, n), 'agent', 'agent ' || n,
       case when n > $2::int then 'pending_approval' else 'rejected' end,
       lastcall_now() - ($3::int - n) * interval '1 minute', case when n <= $2::int then lastcall_now() end
  from generate_series(1, $3::int) n
"""
_AGENT = """
insert into agents (club_id, id, name, responsible_id)
values (row_id($1, 1), row_id(102, 1), 'Robo', row_id($2, 1))
"""
_RUNS = """
insert into agent_runs
       (club_id, id, agent_id, key, thread_key, title, status, started_at, finished_at, superseded_at)
select row_id($1, 1), row_id(103, n), row_id(102, 1), n::text, 'thread', 'Nightly',
       case when n % 4 = 0 then 'failed' else 'succeeded' end, lastcall_now() - n * interval '1 minute',
       lastcall_now() - n * interval '1 minute', case when n > 400 then lastcall_now() end
  from generate_series(1, $2::int) n
"""


async def run() -> list[Figure]:
    """The time against a tenth, and the statements that a look takes."""
    register()
    async with server(settings=LARGE) as on, AsyncExitStack() as stack:
        async with database(on, "base") as db:
            await add_clubs(db, 1)
        many, few = [await _grown(stack, on, name, share) for name, share in (("many", 1), ("few", TENTH))]
        statements = [await _statements(db) for db in (many, few)]
        ratio, here, there = await alternating(_looker(many), _looker(few), CALLS)
    note = f"{here * 1e3:.2f} ms against {there * 1e3:.2f} ms, {PAGE} rows a page, six shelves counted"
    name = f"inbox: {RUNS:,} runs, {DECIDED:,} decided, {WAITING:,} waiting, against a tenth"
    return [
        Figure(name, "service", ratio, at_most=AT_MOST, note=note),
        Figure("inbox: statements of a page with its counts", "service", max(statements), at_most=STATEMENTS),
    ]


async def _grown(stack: AsyncExitStack, on: Server, name: str, share: int) -> Database:
    await create(on, name, "base")
    db = await Database.open(on.url_of(name))
    stack.push_async_callback(db.close)
    decided, asked = DECIDED // share, (DECIDED + WAITING) // share
    async with loader(db) as connection:
        await connection.execute(_INVITED, CLUB, PERSON, asked)
        await connection.execute(_ASKED, CLUB, decided, asked)
        await connection.execute(_AGENT, CLUB, PERSON)
        await connection.execute(_RUNS, CLUB, RUNS // share)
        await connection.execute("analyze")
    return db


async def _look(db: Database) -> None:
    reach = Reach({row_id(CLUB, 1): ALL_PERMISSIONS}, row_id(PERSON, OWNER))
    async with db.read() as tx:
        now: datetime = cast("Any", await tx.raw.fetchval("select lastcall_now()"))
        page = await inbox_page(tx, reach, Wanted(now, now), limit=PAGE)
        counts = await inbox_counts(tx, reach, Wanted(now, now))
    if len(page.items) != PAGE or counts.of(Shelf.WAITING).number != MOST_COUNTED:
        raise RuntimeError("The inbox does not show what waits.")


def _looker(db: Database) -> Callable[[], Awaitable[None]]:
    return lambda: _look(db)


async def _statements(db: Database) -> int:
    """What the two queries send, beside the begin, the clock and the rollback of the read."""
    await _look(db)
    before = db.statements
    await _look(db)
    looked = db.statements - before
    before = db.statements
    async with db.read() as tx:
        await tx.raw.fetchval("select lastcall_now()")
    return looked - (db.statements - before)
