"""The pool of raw connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from lastcall.db.connect import Connection
from lastcall.db.database import Database
from lastcall.db.pool import RawPool
from lastcall.testing.waiting import eventually


@pytest.fixture
async def narrow(database_url: str) -> AsyncIterator[Database]:
    """A database with one raw connection."""
    database = await Database.open(database_url, pool_size=1)
    yield database
    await database.close()


async def _backend(database: Database) -> int:
    pid: int = await database.pool.fetchval("select pg_backend_pid()")
    return pid


async def test_calls_share_the_connections_there_are_and_wait_in_order(narrow: Database) -> None:
    served: list[int] = []

    async def call(number: int) -> None:
        await narrow.pool.execute("select 1")
        served.append(number)

    async with narrow.pool.acquire() as connection:
        pid = connection.get_server_pid()
        calls = [asyncio.create_task(call(number)) for number in range(4)]
        await asyncio.sleep(0)
        assert served == []
    await asyncio.gather(*calls)
    assert served == [0, 1, 2, 3]
    assert await _backend(narrow) == pid


async def test_an_error_of_the_server_costs_no_connection(narrow: Database) -> None:
    pid = await _backend(narrow)
    with pytest.raises(asyncpg.DivisionByZeroError):
        await narrow.pool.fetchrow("select 1 / 0")
    assert await _backend(narrow) == pid


async def test_a_cancelled_call_is_stopped_and_its_connection_not_used_again(
    narrow: Database, database: Database
) -> None:
    pid = await _backend(narrow)
    call = asyncio.create_task(narrow.pool.execute("select pg_sleep(60)"))

    async def is_running(expected: bool) -> bool:
        asked = "select exists (select from pg_stat_activity where pid = $1 and state = 'active')"
        return bool(await database.pool.fetchval(asked, pid)) is expected

    await eventually(lambda: is_running(True))
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await _backend(narrow) != pid
    assert await is_running(False)


async def test_a_cancelled_wait_loses_no_connection(narrow: Database) -> None:
    async with narrow.pool.acquire():
        waits = [asyncio.create_task(_backend(narrow)) for _ in range(2)]
        await asyncio.sleep(0)
        waits[0].cancel()
    pid = await waits[1]
    assert waits[0].cancelled()
    # This one is cancelled after its turn has come and before it could run.
    async with narrow.pool.acquire():
        handed = asyncio.create_task(_backend(narrow))
        await asyncio.sleep(0)
    handed.cancel()
    with pytest.raises(asyncio.CancelledError):
        await handed
    assert await _backend(narrow) == pid


async def test_a_transaction_left_open_in_a_block_is_rolled_back(narrow: Database) -> None:
    async with narrow.pool.acquire() as connection:
        await connection.execute("begin; create table left_open (n int)")
    assert await narrow.pool.fetchval("select to_regclass('left_open')") is None


async def test_closing_lets_a_call_finish_and_refuses_the_next(database_url: str) -> None:
    closing = await Database.open(database_url, pool_size=1)
    call = asyncio.create_task(closing.pool.fetchval("select 42 from pg_sleep(0.2)"))
    await asyncio.sleep(0)
    await closing.close()
    assert await call == 42
    with pytest.raises(asyncpg.InterfaceError, match="closed"):
        await closing.pool.fetchval("select 1")


async def test_a_pool_whose_closing_was_cut_short_refuses_calls_and_keeps_no_connection(
    database_url: str, database: Database
) -> None:
    opening, go_on = asyncio.Event(), asyncio.Event()

    async def connect() -> Connection:
        opening.set()
        await go_on.wait()
        return await database.connect()

    pool = RawPool(connect, 2)
    late = asyncio.create_task(pool.fetchval("select pg_backend_pid()"))
    await opening.wait()
    closing = asyncio.create_task(pool.close())
    await asyncio.sleep(0)  # It has one of the two places, and waits for the other.
    closing.cancel()
    pool.terminate()
    with pytest.raises(asyncpg.InterfaceError, match="closed"):
        await asyncio.wait_for(pool.fetchval("select 1"), 10)
    go_on.set()
    pid = await late

    async def is_gone() -> bool:
        asked = "select not exists (select from pg_stat_activity where pid = $1)"
        return bool(await database.pool.fetchval(asked, pid))

    await eventually(is_gone)
