"""Gates: who takes authority away is never starved, and whoever acts judges after its locks, not before."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from tests.connections.conftest import FIRST_TOKEN

from lastcall.connections.leases import release_lease, renew_lease
from lastcall.connections.switches import set_account_switch, set_fleet_switch
from lastcall.errors import Conflict, Disabled
from lastcall.protocol.constants import LEASE_LIFE
from lastcall.testing.clock import TestClock
from lastcall.testing.locks import wait_until_blocked

SHARED = "select lock_fleet_and_account_shared($1)"


async def test_a_switch_waits_for_those_under_way_and_goes_before_those_who_come_later(site):
    async with site.db.pool.acquire() as earlier, site.db.pool.acquire() as later:
        holding = earlier.transaction()
        await holding.start()
        await earlier.execute(SHARED, site.worker.account_id)

        switching = asyncio.create_task(set_fleet_switch(site.db, None, is_on=True))
        switch_pid = await wait_until_blocked(site.db, "lock_fleet()", by=earlier.get_server_pid())
        sharing = asyncio.create_task(later.execute(SHARED, site.worker.account_id))
        await wait_until_blocked(site.db, later.get_server_pid(), by=switch_pid)

        assert not switching.done()
        await holding.rollback()
        await switching
        await sharing
    assert await site.db.pool.fetchval("select kill_switch from fleet_settings")


async def test_a_shared_row_in_place_of_the_gate_lets_later_ones_pass_a_waiting_switch(site):
    """The twin: with a row lock those who come later overtake the switch for as long as they keep coming."""
    async with (
        site.db.pool.acquire() as earlier,
        site.db.pool.acquire() as later,
        site.db.pool.acquire() as switch,
    ):
        holding = earlier.transaction()
        await holding.start()
        await earlier.execute("select from fleet_settings for share")
        switching = asyncio.create_task(switch.execute("update fleet_settings set kill_switch = true"))
        await wait_until_blocked(site.db, switch.get_server_pid(), by=earlier.get_server_pid())

        overtaken = [await later.execute("select from fleet_settings for share") for _ in range(5)]
        assert overtaken == ["SELECT 1"] * 5
        assert not switching.done()
        await holding.rollback()
        await switching


async def test_a_switch_is_thrown_quickly_under_a_stream_of_authorizations(site):
    stopping = asyncio.Event()

    async def keep_sharing() -> int:
        rounds = 0
        async with site.db.pool.acquire() as connection:
            while not stopping.is_set():
                async with connection.transaction():
                    await connection.execute(SHARED, site.worker.account_id)
                    await connection.execute("select pg_sleep(0.01)")
                rounds += 1
        return rounds

    sharers = [asyncio.create_task(keep_sharing()) for _ in range(8)]
    await wait_for_sharers(site, 3)
    try:
        async with asyncio.timeout(2):
            for is_on in (True, False, True):
                await set_account_switch(site.db, None, site.worker.account_id, is_on=is_on)
    finally:
        stopping.set()
        rounds = await asyncio.gather(*sharers)
    assert min(rounds) > 0
    assert await site.db.pool.fetchval("select kill_switch from accounts")


async def wait_for_sharers(site, at_least: int) -> None:
    from lastcall.testing.waiting import eventually

    async def enough() -> bool:
        holding = await site.db.pool.fetchval(
            "select count(distinct pid) from pg_locks where locktype = 'advisory' and mode = 'ShareLock'"
        )
        return holding >= at_least

    await eventually(enough, message="nobody shares the gate")


async def test_a_take_over_waits_for_an_authorization_that_holds_the_gate(site, test_clock: TestClock):
    held = await site.lease()
    await test_clock.advance(LEASE_LIFE)
    async with site.db.pool.acquire() as authorizing, authorizing.transaction():
        await authorizing.execute(
            "select from connection_gates where connection_id = $1 for share", site.connection_id
        )
        taking = asyncio.create_task(site.lease(site.other_worker()))
        await wait_until_blocked(site.db, "take_lease", by=authorizing.get_server_pid())
        assert not taking.done()
    assert (await taking).fencing_token > held.fencing_token


async def test_a_lease_that_is_released_while_its_renewal_waits_is_not_renewed(site):
    held = await site.lease()
    async with site.db.pool.acquire() as other, other.transaction():
        await other.execute("update leases set released_at = lastcall_now()")
        renewing = asyncio.create_task(renew_lease(site.db, site.worker, held))
        await wait_until_blocked(site.db, "renew_lease", by=other.get_server_pid())
    with pytest.raises(Conflict) as refusal:
        await renewing
    assert refusal.value.code == "stale_lease"


async def test_a_lease_that_runs_out_while_its_renewal_waits_is_not_renewed(site, test_clock: TestClock):
    held = await site.lease()
    async with site.db.pool.acquire() as other, other.transaction():
        await other.execute("select from leases for no key update")
        renewing = asyncio.create_task(renew_lease(site.db, site.worker, held))
        await wait_until_blocked(site.db, "renew_lease", by=other.get_server_pid())
        await test_clock.advance(LEASE_LIFE)
    with pytest.raises(Conflict, match="over"):
        await renewing


async def test_one_statement_that_locks_and_judges_renews_a_lease_that_ran_out(site, test_clock: TestClock):
    """The twin of judging in a new statement: it takes *now* before the wait and revives a dead lease."""
    await site.lease()
    async with site.db.pool.acquire() as other, other.transaction():
        await other.execute("select from leases for no key update")
        renewing = asyncio.create_task(
            site.db.pool.fetchval(
                "update leases set expires_at = lastcall_now() + $1"
                " where released_at is null and expires_at > (select lastcall_now()) returning true",
                LEASE_LIFE,
            )
        )
        await wait_until_blocked(site.db, "update leases", by=other.get_server_pid())
        await test_clock.advance(LEASE_LIFE)
    assert await renewing is True


@pytest.mark.parametrize("switch", ["fleet", "account"])
async def test_a_switch_thrown_while_a_lease_waits_for_the_gate_refuses_it(site, switch):
    async with site.db.pool.acquire() as other, other.transaction():
        await other.execute(
            "select lock_fleet()" if switch == "fleet" else "select lock_account($1)",
            *([] if switch == "fleet" else [site.worker.account_id]),
        )
        table = "fleet_settings" if switch == "fleet" else "accounts"
        await other.execute(f"update {table} set kill_switch = true")
        taking = asyncio.create_task(site.lease())
        await wait_until_blocked(site.db, "take_lease", by=other.get_server_pid())
    with pytest.raises(Disabled) as refusal:
        await taking
    assert refusal.value.code == f"{switch}_switch"


async def test_every_take_away_raises_the_gate(site):
    async def generation() -> int:
        return await site.db.pool.fetchval("select generation from connection_gates")

    from lastcall.connections.connect import disconnect_club, set_features
    from lastcall.connections.switches import set_connection_limit, set_connection_switch

    held = await site.lease()
    steps = [
        lambda: site.lease(),
        lambda: set_connection_switch(site.db, None, site.club_id, site.connection_id, is_on=True),
        lambda: set_features(site.db, None, site.club_id, site.connection_id, []),
        lambda: set_connection_limit(site.db, None, site.club_id, site.connection_id, 5),
        lambda: disconnect_club(site.db, None, site.club_id, site.connection_id),
    ]
    seen = [await generation()]
    for step in steps:
        await step()
        seen.append(await generation())
    assert seen == sorted(set(seen)), held


async def test_releasing_frees_the_connection_for_another_at_once(site):
    await release_lease(site.db, site.worker, await site.lease())
    taken = await site.lease(site.other_worker())
    assert taken.fencing_token == FIRST_TOKEN + 1
    row = await site.db.pool.fetchrow("select expires_at - claimed_at as life, released_at from leases")
    assert row["life"] == LEASE_LIFE > timedelta(seconds=30)
    assert row["released_at"] is None
