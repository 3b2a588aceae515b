"""An account writes so many times a day and no more, over all its workers; a young one less."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from lastcall.connections.allowance import reserve
from lastcall.connections.hello import Journal, say_hello
from lastcall.connections.overview import overview
from lastcall.connections.switches import set_account_limits, set_connection_limit, set_fleet_limit
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.protocol.messages import AllowanceAnswer
from lastcall.testing.clock import TestClock

NOON = datetime(2026, 3, 1, 12, 0, 20, tzinfo=UTC)
DAY = timedelta(days=1)


async def allow(site, *, writes: int) -> None:
    """Nothing but the writes of the day is scarce."""
    await set_fleet_limit(site.db, None, 6000)
    await set_connection_limit(site.db, None, site.club_id, site.connection_id, 6000)
    await set_account_limits(
        site.db, None, site.account.account_id, requests_per_minute=6000, writes_per_day=writes
    )


async def used_up(site, held, writes: int) -> None:
    await allow(site, writes=writes)
    for _ in range(writes):
        assert (await reserve(site.db, site.worker, 2, held, is_write=True)).is_granted


@pytest.mark.clause("COL-12")
async def test_a_write_more_than_the_day_has_is_denied_until_the_next_and_reads_are_not(site, test_clock):
    await test_clock.freeze(NOON)
    held = await site.lease()
    await used_up(site, held, 3)
    denied = await reserve(site.db, site.worker, 2, held, is_write=True)
    assert (denied.is_granted, denied.is_daily_cap) == (False, True)
    assert denied.retry is not None
    midnight = datetime(2026, 3, 2, tzinfo=UTC)
    assert midnight <= NOON + denied.retry < midnight + timedelta(minutes=10)
    assert (await reserve(site.db, site.worker, 2, held)).is_granted
    assert (await reserve(site.db, site.worker, 1, None)).is_granted
    # The middle of the next minute: a minute's first and last seconds may grant nothing.
    await test_clock.set((NOON + denied.retry).replace(second=30) + timedelta(minutes=1))
    await site.set("leases", expires_at=NOON + 2 * DAY)
    assert (await reserve(site.db, site.worker, 2, held, is_write=True)).is_granted


@pytest.mark.clause("BUD-04")
async def test_a_write_that_was_reserved_counts_though_it_was_never_sent(site, test_clock):
    """What is denied does not count."""
    await test_clock.freeze(NOON)
    held = await site.lease()
    await allow(site, writes=2)
    await set_connection_limit(site.db, None, site.club_id, site.connection_id, 2)
    assert (await reserve(site.db, site.worker, 2, held, is_write=True)).is_granted
    denied = await reserve(site.db, site.worker, 2, held, is_write=True)
    assert (denied.is_granted, denied.is_daily_cap) == (False, False)
    await test_clock.set(NOON + timedelta(minutes=2))
    assert (await reserve(site.db, site.worker, 2, held, is_write=True)).is_granted
    await test_clock.set(NOON + timedelta(minutes=4))
    assert (await reserve(site.db, site.worker, 2, held, is_write=True)).is_daily_cap


async def test_the_time_until_the_next_day_fits_the_wire_and_is_each_accounts_own(site, test_clock):
    await test_clock.freeze(datetime(2026, 3, 1, 0, 0, 12, tzinfo=UTC))
    held = await site.lease()
    await used_up(site, held, 1)
    denied = await reserve(site.db, site.worker, 2, held, is_write=True)
    assert denied.retry is not None
    assert (
        AllowanceAnswer(is_granted=False, limit=1, retry_ms=denied.retry // timedelta(milliseconds=1))
        is not None
    )
    assert denied.retry <= DAY
    moments = {
        await site.db.pool.fetchval("select next_writes_at($1, '2026-03-01', $2)", new_id(), NOON)
        for _ in range(40)
    }
    assert len(moments) > 35


YOUNG = [(-1, 50), (0, 50), (6, 50), (7, 200), (29, 200), (30, 1000), (4000, 1000)]


@pytest.mark.parametrize(("age", "writes"), YOUNG)
async def test_a_young_account_writes_less_and_never_more_than_its_operator_allows(
    site, test_clock, age, writes
):
    await test_clock.freeze(NOON)
    joined = date(2026, 3, 1) - timedelta(days=age)
    await say_hello(site.db, site.worker, Journal(new_id(), True), "1.0", joined)
    await say_hello(site.db, site.worker, Journal(new_id(), True), "1.0")  # says nothing of it

    async def allowed() -> int:
        async with site.db.read() as tx:
            return (await overview(tx, None)).accounts[0].writes_allowed

    assert await allowed() == writes
    await set_account_limits(site.db, None, site.account.account_id, writes_per_day=30)
    assert await allowed() == 30


async def test_an_account_of_unknown_age_counts_as_grown(site):
    assert await site.db.pool.fetchval("select writes_allowed(null, 700, '2026-03-01')") == 700


async def reserve_in_two_processes(site, held) -> int:
    other_process = await Database.open(site.db.url)
    try:
        answers = await asyncio.gather(
            *(
                reserve(db, site.worker, 2, held, is_write=True)
                for db in (site.db, other_process)
                for _ in range(5)
            )
        )
    finally:
        await other_process.close()
    return sum(answer.is_granted for answer in answers)


@pytest.mark.clause("BUD-07")
async def test_two_processes_never_pass_the_days_writes_together(site, test_clock: TestClock):
    await test_clock.freeze(NOON)
    held = await site.lease()
    await allow(site, writes=4)
    assert await reserve_in_two_processes(site, held) == 4


async def test_without_the_row_lock_two_processes_pass_the_days_writes(site, test_clock: TestClock):
    """The twin: the guard is the lock on the account's scope."""
    await test_clock.freeze(NOON)
    held = await site.lease()
    await allow(site, writes=4)
    await reserve(site.db, site.worker, 2, held)
    source = await site.db.pool.fetchval("select pg_get_functiondef('reserve_allowance'::regproc)")
    charging = "    foreach v_scope in array v_scopes loop\n        perform allowance_charge"
    unlocked = source.replace(" for no key update;", ";").replace(
        charging, f"    perform pg_sleep(0.2);\n{charging}"
    )
    assert unlocked.count("pg_sleep") == 1
    await site.db.pool.execute(unlocked)
    assert await reserve_in_two_processes(site, held) > 4


@pytest.mark.clause("COL-12")
async def test_a_write_needs_the_lease_like_any_request(site):
    held = await site.lease()
    await allow(site, writes=5)
    stranger = replace(site.worker, worker_id=new_id())
    with pytest.raises(Exception, match="over or another worker") as refusal:
        await reserve(site.db, stranger, 2, held, is_write=True)
    assert getattr(refusal.value, "code", "") == "stale_lease"
    assert await site.db.pool.fetchval("select coalesce(sum(writes), 0) from allowances") == 0
