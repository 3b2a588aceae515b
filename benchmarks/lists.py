"""The shared list over a long past: five million operations that are over, against fifty thousand. The owner sees all
kinds, somebody else the one that is rare; each page is read through the queries, as page and API read it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

import asyncpg

from benchmarks.harness import LARGE, Figure, Server, alternating, create, database, server
from benchmarks.world import (
    CLUB,
    CONNECTION,
    MODERATOR,
    OPERATION,
    PERSON,
    REQUEST,
    WORKER,
    add_clubs,
    add_operations,
    loader,
    row_id,
)
from lastcall.clubs.permissions import ALL_PERMISSIONS, Permission
from lastcall.clubs.policy import Standing
from lastcall.db.connect import connect
from lastcall.db.cursor import Cursor
from lastcall.db.database import Database
from lastcall.db.transaction import Reader
from lastcall.operations.machine import State
from lastcall.operations.queries import ALL, Filter, history, upcoming
from lastcall.people.actor import Actor

FEW, MANY = 50_000, 5_000_000
RARE = 500
"""Rows of the rare kind in either, scattered over all of the past."""
PAGE = 50
AT_MOST = 1.3
CALLS = 60
UPCOMING = 1_000
FIRST_OF_THE_PAST = 10_000

OWNER = Standing(is_owner=True, is_staff=True, permissions=ALL_PERMISSIONS, provider_role_ids=frozenset())
HOLDER = Standing(
    is_owner=False,
    is_staff=True,
    permissions=frozenset({Permission.MANAGE_BANS}),
    provider_role_ids=frozenset(),
)

_REQUESTS = f"""
insert into operation_requests (club_id, id, request_key, kind, size, created_by, digest, schedule, due_at)
select row_id({CLUB}, 1), row_id({REQUEST}, n), 'request-' || n, 'assign_role', 100, row_id({PERSON}, {MODERATOR}),
       sha256(n::text::bytea), '{{"kind": "immediate"}}', lastcall_now()
  from generate_series($1::bigint / 100, $2::bigint / 100) as n
    on conflict do nothing
"""
_PAST = f"""
insert into operations
       (club_id, id, request_id, position, connection_id, epoch, kind, payload, target, schedule_kind, due_at, ready_at,
        lane, actor_id, state, code, claim_nonce, claim_account_id, claim_worker_id, claim_journal_id,
        claim_fencing_token, claim_generation, claim_expires_at, submitted_at, completed_at, grants)
select c.club_id, row_id({OPERATION}, n), row_id({REQUEST}, n / 100), n % 100, c.id, c.epoch,
       case when n % ($2::bigint / {RARE}) = 0 then 'ban_member'
            else (array['assign_role', 'invite_member', 'approve_request', 'remove_role'])[1 + n % 4] end,
       jsonb_build_object('targetUserId', 'usr_' || row_id({OPERATION}, n % 5000)),
       'usr_' || n, 'fixed', t.at, t.at, 3, row_id({PERSON}, {MODERATOR}),
       s.state, case when s.state <> 'succeeded' then 'timeout' end,
       d.id, d.id, d.id, d.id, d.one, d.one, case when d.one = 1 then t.at end, case when d.one = 1 then t.at end,
       t.at, '{{}}'
  from generate_series($1::bigint, $1::bigint + $2::bigint - 1) as n
  join connections c on c.club_id = row_id({CLUB}, 1) and c.id = row_id({CONNECTION}, 1)
 cross join lateral (
       select lastcall_now() - interval '1 hour' - ($1::bigint + $2::bigint - n) * interval '5 s' as at) as t
 cross join lateral (
       select case n % 50 when 1 then 'rejected' when 2 then 'missed' when 3 then 'cancelled'
                          else case when n % ($2::bigint / {RARE}) = 7 then 'indeterminate' else 'succeeded' end
              end as state) as s
 cross join lateral (
       select case when s.state in ('succeeded', 'indeterminate') then row_id({WORKER}, 1) end as id,
              case when s.state in ('succeeded', 'indeterminate') then 1 end as one) as d
"""
_INDEXES = """
select x.relname, pg_get_indexdef(i.indexrelid) as made
  from pg_index i join pg_class x on x.oid = i.indexrelid
 where i.indrelid = 'operations'::regclass and not i.indisunique
"""


@dataclass(frozen=True)
class Case:
    """One page that somebody looks at."""

    name: str
    reader: Standing
    page: Callable[..., Awaitable[list[Any]]]
    only: Filter = ALL
    is_deep: bool = False


CASES = (
    Case("agenda, owner", OWNER, upcoming),
    Case("agenda, one rare permission", HOLDER, upcoming),
    Case("history, owner", OWNER, history),
    Case("history, one rare permission", HOLDER, history),
    Case("history in its middle, owner", OWNER, history, is_deep=True),
    Case("unknown outcomes, owner", OWNER, history, Filter(states=[State.INDETERMINATE])),
)


async def run() -> list[Figure]:
    async with server(settings=LARGE) as on, AsyncExitStack() as stack:
        async with database(on, "base") as db:
            await add_clubs(db, 1)
            async with loader(db) as connection:
                await add_operations(connection, 1, 1, UPCOMING, due_in=timedelta(hours=1))
        few = await _grown(on, "few", FEW)
        many = await _grown(on, "many", MANY)
        readers = [await _reader(stack, on, name) for name in (few, many)]
        return [await _measured(case, *readers) for case in CASES]


async def _measured(case: Case, few: Reader, many: Reader) -> Figure:
    ratio, here, there = await alternating(await _looker(case, many), await _looker(case, few), CALLS)
    note = f"{here * 1e3:.2f} ms against {there * 1e3:.2f} ms, {PAGE} rows a page"
    return Figure(
        f"{case.name}: {MANY:,} over, against {FEW:,}", "service", ratio, at_most=AT_MOST, note=note
    )


async def _looker(case: Case, tx: Reader) -> Callable[[], Awaitable[None]]:
    actor = Actor(row_id(PERSON, MODERATOR), "moderator", is_operator=False)
    middle: datetime = await tx.raw.fetchval(
        "select (min(completed_at) + (max(completed_at) - min(completed_at)) / 2) from operations"
    )
    after = Cursor(middle, row_id(OPERATION, 0)) if case.is_deep else None

    async def call() -> None:
        rows = await case.page(tx, case.reader, actor, row_id(CLUB, 1), case.only, after=after, limit=PAGE)
        if len(rows) != PAGE and not (case.page is upcoming and case.reader is HOLDER):
            raise RuntimeError(f"{case.name}: a page of {len(rows)}")

    return call


async def _reader(stack: AsyncExitStack, on: Server, name: str) -> Reader:
    connection = await connect(on.url_of(name))
    stack.push_async_callback(connection.close)
    return Reader(cast("Any", None), connection)


async def _grown(on: Server, name: str, size: int) -> str:
    """A copy of the base with that much past; its name. The indexes are built afterwards, which is far quicker."""
    await create(on, name, "base")
    db = await Database.open(on.url_of(name))
    try:
        async with loader(db) as connection:
            await _add_past(connection, size)
    finally:
        await db.close()
    return name


async def _add_past(connection: asyncpg.Connection[asyncpg.Record], size: int) -> None:
    await connection.execute("set maintenance_work_mem = '512MB'")
    indexes = await connection.fetch(_INDEXES)
    await connection.execute("alter table operations drop constraint operations_whole_check")
    for index in indexes:
        await connection.execute(f"drop index {index['relname']}")
    last = FIRST_OF_THE_PAST + size
    await connection.execute(_REQUESTS, FIRST_OF_THE_PAST, last)
    await connection.execute(_PAST, FIRST_OF_THE_PAST, size)
    for index in indexes:
        await connection.execute(index["made"])
