"""A sample and the end of its epoch at the same time: the sample waits, and is then another epoch's and refused."""

from __future__ import annotations

import asyncio

import pytest
from tests.telemetry.conftest import Stage

from lastcall.clubs.activity import COMMAND_LINE
from lastcall.connections.connect import end_connection
from lastcall.errors import Conflict
from lastcall.testing.locks import wait_until_blocked

UNLOCKED = """
    create or replace function lock_telemetry(p_club uuid, p_connection uuid) returns void
    language plpgsql volatile as $$ begin end $$
"""
"""The twin of the locks that a sample takes before it is judged."""


async def kept(stage: Stage) -> tuple[int, list[str]]:
    samples = await stage.db.pool.fetchval("select count(*) from telemetry_samples")
    return samples, await stage.windows()


async def test_a_sample_that_meets_the_end_of_its_epoch_is_refused(stage):
    async with stage.db.transaction() as tx:
        await end_connection(tx, COMMAND_LINE, stage.site.club_id, stage.site.connection_id)
        holder = await tx.raw.fetchval("select pg_backend_pid()")
        sampling = asyncio.ensure_future(stage.sample(held=stage.held))
        await wait_until_blocked(stage.db, "record_sample", by=holder)
    with pytest.raises(Conflict) as refusal:
        await sampling
    assert refusal.value.code == "stale_lease"
    assert await kept(stage) == (0, [])


async def test_without_its_locks_a_sample_would_open_a_window_of_an_epoch_that_is_over(stage):
    await stage.db.pool.execute(UNLOCKED)
    async with stage.db.transaction() as tx:
        await end_connection(tx, COMMAND_LINE, stage.site.club_id, stage.site.connection_id)
        await asyncio.ensure_future(stage.sample(held=stage.held))
    assert await kept(stage) == (1, ["observed*"])


async def test_one_look_sent_twice_at_once_is_kept_once(stage):
    sent = [stage.sample(poll_id="poll-of-one-moment", held=stage.held) for _ in range(2)]
    assert sorted(await asyncio.gather(*sent)) == [False, True]
    assert await kept(stage) == (1, ["observed*"])
