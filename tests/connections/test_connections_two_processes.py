"""Several server processes: work, and the end of a key, cross over the wake channel."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from uuid import UUID

import pytest

from lastcall.connections.accounts import rotate_key
from lastcall.connections.keys import KeyRing
from lastcall.connections.signals import work
from lastcall.connections.work import Due, Ready, WorkBoard
from lastcall.db.database import Database
from lastcall.deadlines.signals import Missed
from lastcall.deadlines.wake import WakeChannel
from lastcall.errors import NotSignedIn
from lastcall.testing.waiting import WITHIN, eventually


class Given:
    """A work source that has what the test gave it."""

    def __init__(self) -> None:
        self.work: list[Ready] = []
        self.reads = 0

    async def ready(self, account_id: UUID) -> Sequence[Ready]:
        self.reads += 1
        return self.work


@pytest.fixture
async def other_process(site) -> AsyncIterator[Database]:
    """A second process's database; each of the two has its wake channel up."""
    other = await Database.open(site.db.url)
    channels = [WakeChannel(site.db), WakeChannel(other)]
    for channel in channels:
        await channel.start()
    await eventually(lambda: all(channel.is_up for channel in channels))
    yield other
    for channel in channels:
        await channel.stop()
    await other.close()


async def test_a_collector_parked_at_one_process_is_told_of_work_made_in_another(site, other_process):
    source = Given()
    board = WorkBoard(other_process, [source])
    waiting = asyncio.create_task(
        board.wait(site.worker.account_id, site.worker.worker_id, timedelta(minutes=5))
    )
    await eventually(lambda: source.reads)
    async with site.db.transaction() as tx:
        now = await tx.raw.fetchval("select lastcall_now()")
        source.work = [Ready(site.club_id, site.connection_id, now)]
        tx.publish(work(site.worker.account_id, now))
    async with asyncio.timeout(WITHIN):
        assert await waiting == [Due(site.club_id, site.connection_id)]


async def test_a_rotated_key_is_dropped_from_the_memory_of_every_process(site, other_process):
    keys = KeyRing(other_process)
    await keys.verify(site.account.account_id, site.account.key)
    await rotate_key(site.db, None, site.account.account_id)

    async def is_refused() -> bool:
        try:
            await keys.verify(site.account.account_id, site.account.key)
        except NotSignedIn:
            return True
        return False

    assert await eventually(is_refused)


async def test_after_the_channel_was_away_boards_and_keys_are_read_again(site):
    source = Given()
    board, keys = WorkBoard(site.db, [source]), KeyRing(site.db)
    await keys.verify(site.account.account_id, site.account.key)
    waiting = asyncio.create_task(
        board.wait(site.worker.account_id, site.worker.worker_id, timedelta(minutes=5))
    )
    await eventually(lambda: source.reads)
    source.work = [
        Ready(site.club_id, site.connection_id, await site.db.pool.fetchval("select lastcall_now()"))
    ]
    sent = site.db.statements
    site.db.bus.deliver([Missed()])
    async with asyncio.timeout(WITHIN):
        assert await waiting
    assert source.reads == 2
    read = site.db.statements
    assert read > sent
    await keys.verify(site.account.account_id, site.account.key)
    assert site.db.statements == read + 1
