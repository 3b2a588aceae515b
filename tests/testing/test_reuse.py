"""A database that one test used is as new for the next, or nobody gets it."""

from __future__ import annotations

from asyncio import to_thread

import asyncpg
import pytest

from lastcall.db.connect import connect
from lastcall.db.database import Database
from lastcall.people.service import add_person
from lastcall.testing.clock import TestClock
from lastcall.testing.database import TestServer

MANY_ROWS = """
insert into audit_log (id, action, subject, details)
select gen_random_uuid(), 'x', repeat('x', 200), '{}' from generate_series(1, 1000)
"""

Content = dict[str, list[str]]


async def content(connection: asyncpg.Connection[asyncpg.Record]) -> Content:
    """Every row of every table that tests write."""
    tables = [row["name"] for row in await connection.fetch("select name from lastcall_kept.tables_now()")]
    return {
        name: [row[0] for row in await connection.fetch(f"select t::text from {name} t order by 1")]
        for name in tables
    }


async def looked_at(url: str) -> Content:
    connection = await connect(url)
    try:
        return await content(connection)
    finally:
        await connection.close()


async def use(url: str, *statements: str) -> None:
    """What a test does, and what this one does besides."""
    database = await Database.open(url)
    await add_person(database, "someone@example.org", "Someone", operator=True)
    await database.pool.execute("update fleet_settings set kill_switch = true")
    for statement in statements:
        await database.pool.execute(statement)
    await database.close()
    clock = TestClock(url)
    await clock.freeze()


@pytest.mark.postgres15
async def test_the_next_test_finds_it_as_new(postgres: TestServer) -> None:
    url = await to_thread(postgres.take)
    before = await looked_at(url)
    await use(
        url,
        "create table own (id bigint generated always as identity, person_id uuid references people)",
        "insert into own (person_id) select id from people",
    )
    assert await looked_at(url) != before
    assert await to_thread(postgres.give_back, url)
    assert await to_thread(postgres.take) == url
    assert await looked_at(url) == before


@pytest.mark.parametrize(
    "trace",
    [
        "alter table people add column shoe_size int",
        "create or replace function lastcall_now() returns timestamptz language sql as 'select now()'",
        "create function own() returns int language sql as 'select 1'",
        "drop index audit_log_created_at_id_idx",
        "create schema own",
        "create sequence own; select nextval('own')",
        "comment on table people is 'seen'; alter table people set (fillfactor = 50)",
        "analyze people",
        "vacuum people",
        "do $$ begin execute format('alter database %I set jit = on', current_database()); end $$",
        MANY_ROWS,
    ],
)
async def test_one_that_would_keep_a_trace_is_nobodys(postgres: TestServer, trace: str) -> None:
    url = await to_thread(postgres.take)
    await use(url, trace)
    assert not await to_thread(postgres.give_back, url)
    assert await to_thread(postgres.take) != url


async def test_one_that_somebody_still_uses_is_nobodys(postgres: TestServer) -> None:
    url = await to_thread(postgres.take)
    connection = await connect(url)
    assert not await to_thread(postgres.give_back, url)
    await connection.close()
