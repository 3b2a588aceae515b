"""Quiet until due: the real server over real HTTP, a real collector process that waits, and a deadline ninety days
off; two minutes in which nothing is sent to the database. This is the one test that waits for time to pass."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from lastcall.db.connect import connect
from lastcall.decisions.retention.kinds.join_request import JOIN_REQUEST
from lastcall.demo.club import forgotten_request
from lastcall.demo.stage import Stage, stage
from lastcall.operations.schedules import Immediate
from lastcall.operations.services.enqueue import enqueue
from lastcall.settings import Settings
from lastcall.testing.quiet import assert_quiet, calls_by_statement, collector_settled
from lastcall.testing.waiting import eventually

TWO_MINUTES = 120.0
FAR = timedelta(days=90)


@pytest.fixture
async def evening(tmp_path: Path) -> AsyncIterator[Stage]:
    """Everything up, the collector signed in and at rest."""
    async with _stage(tmp_path) as running:
        await forgotten_request(running.db, running.club, FAR)
        await collector_settled(running.db)
        yield running


@asynccontextmanager
async def _stage(home: Path) -> AsyncIterator[Stage]:
    settings = Settings(home=home, port=0, simulator_port=0)
    async with stage(settings, members=5, is_kept=False, say=lambda _: None) as running:
        yield running


@pytest.mark.kill
@pytest.mark.timeout(300)
@pytest.mark.clause("RET-09", "SCH-03", "SCH-06")
async def test_two_idle_minutes_execute_no_statement(evening: Stage) -> None:
    baseline = await _database_without_lastcall(evening)
    before = await _calls(evening.db.url), await _calls(baseline)
    async with assert_quiet(evening.db, TWO_MINUTES):
        pass
    after = await _calls(evening.db.url), await _calls(baseline)
    assert after[0] - before[0] == after[1] - before[1]
    await _assert_the_collector_was_waiting(evening)


@pytest.mark.kill
async def test_a_polling_loop_would_have_been_noticed(evening: Stage) -> None:
    async def poll() -> None:
        while True:
            await evening.db.pool.fetchrow(JOIN_REQUEST.order.next_deadline)
            await asyncio.sleep(0.5)

    polling = asyncio.create_task(poll())
    try:
        with pytest.raises(AssertionError, match="archive_due_at"):
            async with assert_quiet(evening.db, 2):
                pass
    finally:
        polling.cancel()


async def _calls(url: str) -> int:
    return sum((await calls_by_statement(url)).values())


async def _database_without_lastcall(evening: Stage) -> str:
    """A database on the same server that nobody uses: whatever is executed there, the server does by itself."""
    parts = urlsplit(evening.db.url)
    connection = await connect(urlunsplit(parts._replace(path="/postgres")))
    try:
        await connection.execute("create database without_lastcall")
    finally:
        await connection.close()
    return urlunsplit(parts._replace(path="/without_lastcall"))


async def _assert_the_collector_was_waiting(evening: Stage) -> None:
    """It was there all the time: what is queued now is sent at once."""
    assert evening.collector is not None
    assert evening.collector.is_running
    payload = {"kind": "invite_member", "targetUserId": evening.seed.strangers[0]}
    queued = await enqueue(
        evening.db, evening.club.owner, evening.club.club_id, "after-the-quiet", [payload], Immediate()
    )

    async def is_sent() -> bool:
        state = "select state from operations where id = $1"
        return bool(await evening.db.pool.fetchval(state, queued.operation_ids[0]) == "succeeded")

    await eventually(is_sent, within=30)
