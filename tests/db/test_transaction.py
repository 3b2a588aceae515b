"""What a transaction says, to whom, and when."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import asyncpg
import pytest
from sqlalchemy import insert, select, text
from sqlalchemy.exc import DBAPIError

from lastcall.db.connect import Connection
from lastcall.db.database import Database, xid_status
from lastcall.db.ids import new_id
from lastcall.db.tables import Directory
from lastcall.db.transaction import Transaction
from lastcall.errors import Unavailable


@dataclass(frozen=True)
class Said:
    word: str


@pytest.fixture
def heard(database: Database) -> list[str]:
    words: list[str] = []
    database.bus.subscribe(Said, lambda said: words.append(said.word))
    return words


async def write(tx: Transaction, key: str) -> None:
    await tx.execute(insert(Directory).values(kind="test", key=key, club_id=new_id()))


async def keys(database: Database) -> set[str]:
    rows = await database.pool.fetch("select key from directory")
    return {row["key"] for row in rows}


async def test_messages_leave_after_the_commit_and_not_before(database: Database, heard: list[str]) -> None:
    async with database.transaction() as tx:
        await write(tx, "a")
        tx.publish(Said("one"))
        assert heard == []
    assert heard == ["one"]
    assert await keys(database) == {"a"}


async def test_a_rollback_drops_rows_and_messages(database: Database, heard: list[str]) -> None:
    with pytest.raises(ValueError, match="no"):
        async with database.transaction() as tx:
            await write(tx, "a")
            tx.publish(Said("one"))
            raise ValueError("no")
    assert heard == []
    assert await keys(database) == set()


async def test_an_inner_transaction_is_a_savepoint_whose_messages_wait_for_the_outermost_commit(
    database: Database, heard: list[str]
) -> None:
    async with database.transaction() as outer:
        outer.publish(Said("first"))
        async with database.transaction() as inner:
            await write(inner, "kept")
            inner.publish(Said("second"))
            assert inner.raw is outer.raw
        with pytest.raises(ValueError, match="no"):
            async with database.transaction() as inner:
                await write(inner, "undone")
                inner.publish(Said("never"))
                raise ValueError("no")
        outer.publish(Said("third"))
        assert heard == []
    assert heard == ["first", "second", "third"]
    assert await keys(database) == {"kept"}


async def test_a_failed_statement_in_a_savepoint_leaves_the_outer_transaction_usable(
    database: Database,
) -> None:
    async with database.transaction() as outer:
        await write(outer, "a")
        with pytest.raises(asyncpg.UniqueViolationError):
            async with database.transaction() as inner:
                await inner.raw.execute("insert into directory select * from directory")
        await write(outer, "b")
    assert await keys(database) == {"a", "b"}


async def test_a_swallowed_failure_is_not_taken_for_a_commit(database: Database, heard: list[str]) -> None:
    with pytest.raises(RuntimeError, match="rolled back"):
        async with database.transaction() as tx:
            with pytest.raises(asyncpg.DivisionByZeroError):
                await tx.raw.execute("select 1/0")
    with pytest.raises(asyncpg.InFailedSQLTransactionError):
        async with database.transaction() as tx:
            tx.publish(Said("one"))
            with pytest.raises(asyncpg.DivisionByZeroError):
                await tx.raw.execute("select 1/0")
    assert heard == []


@pytest.mark.clause("ACC-17")
async def test_outermost_refuses_to_run_inside_another(database: Database) -> None:
    async with database.transaction():
        with pytest.raises(RuntimeError, match="own transaction"):
            async with database.transaction(outermost=True):
                pytest.fail("it ran")
    async with database.transaction(outermost=True) as tx:
        await write(tx, "a")
    assert await keys(database) == {"a"}


async def test_a_child_task_does_not_inherit_the_transaction(database: Database) -> None:
    async def child() -> set[str]:
        async with database.transaction(outermost=True) as tx:
            return set((await tx.execute(select(Directory.key))).scalars())

    async with database.transaction() as tx:
        await write(tx, "a")
        assert await asyncio.create_task(child()) == set()


async def test_a_read_cannot_write_and_joins_an_open_transaction(database: Database) -> None:
    async with database.read() as reader:
        with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
            await reader.raw.execute("delete from directory")
    async with database.read():
        with pytest.raises(RuntimeError, match="around the read"):
            async with database.transaction():
                pytest.fail("it began")
    async with database.transaction() as tx:
        await write(tx, "a")
        async with database.read() as reader:
            assert await reader.scalar(select(Directory.key)) == "a"


async def test_a_failing_handler_costs_neither_the_writer_nor_the_others(
    database: Database, heard: list[str]
) -> None:
    def broken(said: Said) -> None:
        raise ValueError(said.word)

    database.bus.subscribe(Said, broken)
    later: list[object] = []
    database.bus.subscribe(object, later.append)
    async with database.transaction() as tx:
        tx.publish(Said("one"))
    assert heard == ["one"]
    assert later == [Said("one")]


async def test_a_cancelled_body_rolls_back(database: Database, heard: list[str]) -> None:
    started = asyncio.Event()

    async def work() -> None:
        async with database.transaction() as tx:
            await write(tx, "a")
            tx.publish(Said("one"))
            started.set()
            await tx.raw.execute("select pg_sleep(30)")

    task = asyncio.create_task(work())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert heard == []
    assert await keys(database) == set()


async def test_xid_status_tells_what_became_of_a_transaction(database: Database) -> None:
    async with database.transaction() as tx:
        xid = int(await tx.raw.fetchval("select pg_current_xact_id()::text"))
        assert await xid_status(database, xid) == "in progress"
    assert await xid_status(database, xid) == "committed"
    assert await xid_status(database, xid + 1_000_000) == "aborted"


async def test_the_statement_counter_counts_both_pools(database: Database) -> None:
    before = database.statements
    async with database.transaction() as tx:
        await write(tx, "a")
    assert database.statements - before == 3
    await database.pool.fetchval("select 1")
    assert database.statements - before == 4


async def test_an_error_does_not_repeat_what_was_sent(database: Database) -> None:
    with pytest.raises(DBAPIError) as error:
        async with database.transaction() as tx:
            await tx.execute(
                text("select 1 / 0 where cast(:word as text) <> ''"), {"word": "nobody@example.org"}
            )
    assert "nobody@example.org" not in str(error.value)


async def test_a_loss_that_the_driver_has_not_seen_to_its_end_is_a_loss_all_the_same(
    database: Database,
) -> None:
    """Between a backend's last words and the socket's end, asyncpg refuses a statement as its own mistake."""
    refusal = asyncpg.InternalClientError("cannot switch to state 12; another operation (2) is in progress")
    with pytest.raises(Unavailable, match="nothing was saved"):
        async with database.transaction() as tx:
            await tx.raw.execute("select 1")
            tx.raw.terminate()
            raise refusal


@pytest.mark.parametrize("kind", ["begin", "begin read only"])
async def test_a_transaction_that_is_cancelled_while_it_begins_is_not_the_next_ones(
    database_url: str, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The server has begun it, and the answer never comes."""
    narrow = await Database.open(database_url, pool_size=1)
    execute, has_begun = Connection.execute, asyncio.Event()

    async def begin_and_wait(connection: Connection, statement: str) -> str:
        tag = await execute(connection, statement)
        if statement == kind:
            has_begun.set()
            await asyncio.Event().wait()
        return str(tag)

    async def work() -> None:
        async with narrow.read() if "read" in kind else narrow.transaction():
            raise AssertionError("It did not begin.")

    with monkeypatch.context() as patched:
        patched.setattr(Connection, "execute", begin_and_wait)
        task = asyncio.create_task(work())
        await has_begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    async with narrow.checkout() as (_, raw):
        assert not raw.is_in_transaction()
    async with narrow.transaction() as tx:
        await write(tx, "next")
    assert await keys(narrow) == {"next"}
    await narrow.close()
