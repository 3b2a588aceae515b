"""Leases: one worker at a time, by a token that only rises."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lastcall.connections.leases import release_lease, renew_lease, take_lease
from lastcall.errors import Conflict, NotFound
from lastcall.protocol.constants import LEASE_LIFE
from lastcall.testing.clock import TestClock


async def test_each_lease_has_a_higher_token_whoever_takes_it(site, test_clock: TestClock):
    tokens = []
    for _ in range(3):
        held = await site.lease()
        tokens.append(held.fencing_token)
        await release_lease(site.db, site.worker, held)
    other = site.other_worker()
    tokens.append((await site.lease(other)).fencing_token)
    await test_clock.advance(LEASE_LIFE)
    tokens.append((await site.lease()).fencing_token)

    assert tokens == sorted(set(tokens))


async def test_a_held_connection_is_refused_to_another_worker_until_the_lease_is_over(
    site, test_clock: TestClock
):
    held = await site.lease()
    with pytest.raises(Conflict) as refusal:
        await site.lease(site.other_worker())
    assert refusal.value.code == "held"

    await test_clock.advance(LEASE_LIFE)
    taken = await site.lease(site.other_worker())
    assert taken.fencing_token > held.fencing_token


async def test_a_lease_taken_over_can_neither_be_renewed_nor_released_by_its_former_worker(
    site, test_clock: TestClock
):
    held = await site.lease()
    await test_clock.advance(LEASE_LIFE)
    other = site.other_worker()
    taken = await site.lease(other)

    for call in (renew_lease, release_lease):
        with pytest.raises(Conflict) as refusal:
            await call(site.db, site.worker, held)
        assert refusal.value.code == "stale_lease"
    await renew_lease(site.db, other, taken)


async def test_renewing_keeps_the_token_and_lasts_from_now(site, test_clock: TestClock):
    await test_clock.freeze()
    held = await site.lease()
    await test_clock.advance(LEASE_LIFE - timedelta(seconds=1))
    renewed = await renew_lease(site.db, site.worker, held)
    assert renewed.life == LEASE_LIFE

    await test_clock.advance(timedelta(seconds=2))
    assert (await renew_lease(site.db, site.worker, held)).life == LEASE_LIFE


async def test_a_lease_that_ran_out_cannot_be_renewed(site, test_clock: TestClock):
    held = await site.lease()
    await test_clock.advance(LEASE_LIFE)
    with pytest.raises(Conflict, match="over"):
        await renew_lease(site.db, site.worker, held)


async def test_the_same_worker_taking_its_lease_again_ends_its_older_pass(site):
    older = await site.lease()
    newer = await site.lease()
    with pytest.raises(Conflict):
        await renew_lease(site.db, site.worker, older)
    await renew_lease(site.db, site.worker, newer)


async def test_an_account_is_not_told_of_connections_it_does_not_serve(site):
    stranger = await site.db.pool.fetchval(
        "insert into accounts (id, alias, vrchat_user_id, state, credential_generation)"
        " values (gen_random_uuid(), 'stranger', 'usr_s', 'ready', 1) returning id"
    )
    await site.db.pool.execute("insert into worker_keys values ($1, 1, '\\x01')", stranger)
    worker = type(site.worker)(stranger, 1, site.worker.worker_id, "usr_s")
    with pytest.raises(NotFound):
        await take_lease(site.db, worker, site.club_id, site.connection_id)
