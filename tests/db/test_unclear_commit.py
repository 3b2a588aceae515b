"""A COMMIT whose outcome nobody knows: no message is lost, none is delivered for what did not happen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from datetime import timedelta

import asyncpg
import pytest
from sqlalchemy import insert

import lastcall.db.transaction
from lastcall.db.database import Database, xid_status
from lastcall.db.ids import new_id
from lastcall.db.tables import Directory
from lastcall.errors import Unavailable
from lastcall.testing.proxy import Cut, CuttingProxy
from lastcall.testing.waiting import eventually

Unclear = list[tuple[Sequence[object], int]]


@pytest.fixture
async def proxy(database_url: str) -> AsyncIterator[CuttingProxy]:
    async with CuttingProxy(database_url) as proxy:
        yield proxy


@pytest.fixture
async def far(proxy: CuttingProxy) -> AsyncIterator[Database]:
    """The database as seen through the proxy."""
    database = await Database.open(proxy.url)
    yield database
    await database.close()


@pytest.fixture
def heard(far: Database) -> list[object]:
    words: list[object] = []
    far.bus.subscribe(str, words.append)
    return words


@pytest.fixture
def unclear(far: Database) -> Unclear:
    transactions: Unclear = []
    far.bus.subscribe_unclear(lambda messages, xid: transactions.append((messages, xid)))
    return transactions


async def write_and_say(database: Database) -> None:
    async with database.transaction() as tx:
        await tx.execute(insert(Directory).values(kind="test", key="a", club_id=new_id()))
        tx.publish("said")


async def row_is_there(database: Database) -> bool:
    return bool(await database.pool.fetchval("select exists (select from directory)"))


async def test_cut_before_commit_took_effect_is_unclear_and_turns_out_aborted(
    database: Database,
    far: Database,
    proxy: CuttingProxy,
    heard: list[object],
    unclear: Unclear,
) -> None:
    proxy.arm(Cut.BEFORE)
    with pytest.raises(Unavailable, match="may or may not"):
        await write_and_say(far)
    [(messages, xid)] = unclear
    assert messages == ("said",)
    assert heard == []

    async def is_aborted() -> bool:
        return await xid_status(database, xid) == "aborted"

    await eventually(is_aborted)
    assert not await row_is_there(database)


async def test_cut_after_commit_took_effect_is_unclear_and_turns_out_committed(
    database: Database,
    far: Database,
    proxy: CuttingProxy,
    heard: list[object],
    unclear: Unclear,
) -> None:
    proxy.arm(Cut.AFTER)
    with pytest.raises(Unavailable, match="may or may not"):
        await write_and_say(far)
    [(messages, xid)] = unclear
    assert messages == ("said",)
    assert heard == []
    assert await xid_status(database, xid) == "committed"
    assert await row_is_there(database)


async def test_the_row_may_appear_late_and_until_then_the_transaction_is_in_progress(
    database: Database, far: Database, proxy: CuttingProxy, unclear: Unclear
) -> None:
    proxy.arm(Cut.LATE)
    with pytest.raises(Unavailable, match="may or may not"):
        await write_and_say(far)
    [(_, xid)] = unclear
    assert await xid_status(database, xid) == "in progress"
    assert not await row_is_there(database)
    await proxy.release()
    assert await xid_status(database, xid) == "committed"
    assert await row_is_there(database)


async def test_a_commit_that_takes_too_long_is_unclear(
    database: Database,
    far: Database,
    proxy: CuttingProxy,
    unclear: Unclear,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lastcall.db.transaction, "COMMIT_TIMEOUT", timedelta(seconds=0.2))
    proxy.arm(Cut.SILENT)
    with pytest.raises(Unavailable, match="may or may not"):
        await write_and_say(far)
    [(_, xid)] = unclear
    await proxy.release()
    assert await xid_status(database, xid) == "committed"


async def test_without_messages_nobody_is_bothered_with_an_unclear_outcome(
    far: Database, proxy: CuttingProxy, unclear: Unclear
) -> None:
    proxy.arm(Cut.AFTER)
    with pytest.raises(Unavailable, match="may or may not"):
        async with far.transaction() as tx:
            await tx.raw.execute("delete from directory")
    assert unclear == []


async def test_a_task_cancelled_during_commit_has_committed_and_its_messages_are_delivered(
    database: Database,
    far: Database,
    proxy: CuttingProxy,
    heard: list[object],
    unclear: Unclear,
) -> None:
    proxy.arm(Cut.SILENT)
    task = asyncio.create_task(write_and_say(far))
    await proxy.reached.wait()
    task.cancel()
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    assert heard == []
    await proxy.release(answer=True)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert heard == ["said"]
    assert unclear == []
    assert await row_is_there(database)


async def test_twin_without_the_shield_a_cancelled_writer_never_says_what_it_committed(
    database: Database,
    far: Database,
    proxy: CuttingProxy,
    heard: list[object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def unshielded(work: Awaitable[object]) -> object:
        return await work

    monkeypatch.setattr(lastcall.db.transaction, "_finish", unshielded)
    proxy.arm(Cut.SILENT)
    task = asyncio.create_task(write_and_say(far))
    await proxy.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await proxy.release()
    assert await row_is_there(database)
    assert heard == []


async def test_a_commit_task_that_is_itself_cancelled_is_unclear(
    far: Database, proxy: CuttingProxy, unclear: Unclear
) -> None:
    """What happens when the event loop goes down: everything is cancelled, the shielded COMMIT as well."""
    before = asyncio.all_tasks()
    proxy.arm(Cut.SILENT)
    task = asyncio.create_task(write_and_say(far))
    await proxy.reached.wait()
    for other in asyncio.all_tasks() - before:
        if other is not task and "_commit" in repr(other.get_coro()):
            other.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [messages for messages, _ in unclear] == [("said",)]


async def test_a_refused_commit_is_no_unclear_one(
    far: Database, heard: list[object], unclear: Unclear
) -> None:
    """A deferred constraint fails at COMMIT: the server said no, so the messages are dropped."""
    await far.pool.execute(
        "create table once (id int unique deferrable initially deferred); insert into once values (1)"
    )
    with pytest.raises(asyncpg.UniqueViolationError):
        async with far.transaction() as tx:
            await tx.raw.execute("insert into once values (1)")
            tx.publish("said")
    assert heard == []
    assert unclear == []


async def test_the_pools_recover_after_a_cut(far: Database, proxy: CuttingProxy, heard: list[object]) -> None:
    proxy.arm(Cut.BEFORE)
    with pytest.raises(Unavailable, match="may or may not"):
        await write_and_say(far)
    await write_and_say(far)
    assert heard == ["said"]
