"""Lease expiry: a lease that ran out is ended at its time and its connection offered again."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from tests.connections.conftest import build_site

from lastcall.connections.expiry import LeaseExpiry, lease_expiry_owner
from lastcall.connections.leases import release_lease, renew_lease
from lastcall.connections.signals import LEASE_EXPIRY, work
from lastcall.deadlines.owner import Done, Stop
from lastcall.deadlines.poison import Candidate
from lastcall.deadlines.scheduler import Scheduler
from lastcall.deadlines.signals import Signal
from lastcall.protocol.constants import LEASE_LIFE
from lastcall.testing.clock import TestClock
from lastcall.testing.locks import wait_until_blocked
from lastcall.testing.waiting import eventually


def signals_of(db) -> list[Signal]:
    heard: list[Signal] = []
    db.bus.subscribe(Signal, heard.append)
    return heard


async def open_leases(site) -> int:
    return await site.db.pool.fetchval("select count(*) from leases where released_at is null")


async def test_the_next_deadline_is_the_earliest_end_of_an_open_lease(site, test_clock: TestClock):
    other = await build_site(site.db, 2)
    source = LeaseExpiry(site.db)
    assert (await source.next_deadline()).deadline is None
    await test_clock.freeze()
    held = await site.lease()
    first = await test_clock.now() + LEASE_LIFE
    await test_clock.advance(timedelta(seconds=1))
    await other.lease()
    assert (await source.next_deadline()).deadline == first
    await release_lease(site.db, site.worker, held)
    assert (await source.next_deadline()).deadline == first + timedelta(seconds=1)


async def test_taking_a_lease_says_when_it_ends_and_costs_no_read(site, test_clock: TestClock):
    await test_clock.freeze()
    heard = signals_of(site.db)
    await site.lease()
    ends = await site.db.pool.fetchval("select expires_at from leases")
    assert Signal(LEASE_EXPIRY, ends) in heard


async def test_a_lease_that_ran_out_is_ended_and_its_account_told(site, test_clock: TestClock):
    await site.lease()
    await test_clock.advance(LEASE_LIFE)
    heard = signals_of(site.db)
    assert isinstance(await lease_expiry_owner(site.db).run_pass(Stop()), Done)
    assert await open_leases(site) == 0
    assert heard == [work(site.worker.account_id)]


async def test_a_lease_renewed_while_its_end_waits_for_the_lock_stays_open(site, test_clock: TestClock):
    held = await site.lease()
    await test_clock.advance(LEASE_LIFE)
    source = LeaseExpiry(site.db)
    upto = await source.boundary()
    assert upto is not None
    (candidate,) = await source.page(None, upto, 100)
    assert candidate == Candidate(site.club_id, site.connection_id, upto)
    async with site.db.pool.acquire() as other, other.transaction():
        await other.execute("update leases set expires_at = lastcall_now() + interval '1 minute'")
        settling = asyncio.create_task(source.settle(candidate))
        await wait_until_blocked(site.db, "end_expired_lease", by=other.get_server_pid())
    await settling
    assert await open_leases(site) == 1
    await renew_lease(site.db, site.worker, held)


async def test_the_scheduler_ends_leases_by_the_databases_clock(site, test_clock: TestClock):
    scheduler = Scheduler(site.db, [lease_expiry_owner(site.db)])
    await scheduler.start()
    try:
        await site.lease()
        await site.db.pool.execute(
            "update leases set expires_at = lastcall_now() + interval '300 milliseconds'"
        )
        site.db.bus.deliver(
            [Signal(LEASE_EXPIRY, await site.db.pool.fetchval("select expires_at from leases"))]
        )
        await eventually(lambda: no_open_lease(site))
        late = await site.db.pool.fetchval("select released_at - expires_at from leases")
        assert late >= timedelta(0)
    finally:
        await scheduler.stop()


async def no_open_lease(site) -> bool:
    return await open_leases(site) == 0
