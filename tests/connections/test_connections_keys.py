"""Worker keys: only the newest is good, and what is remembered of it never outlives a change."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from tests.connections.conftest import FIRST_TOKEN

from lastcall.connections.accounts import KEY_PREFIX, add_account, revoke_key, rotate_key, set_account_state
from lastcall.connections.keys import KeyRing
from lastcall.connections.states import AccountState
from lastcall.connections.switches import set_account_switch, set_fleet_switch
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.errors import Conflict, Disabled, Invalid, NotAllowed, NotSignedIn, Unavailable
from lastcall.people.actor import Actor
from lastcall.testing.fake_clock import FakeClock
from lastcall.testing.proxy import Cut, CuttingProxy


async def test_a_key_is_stored_as_its_hash_alone(site):
    assert site.account.key.startswith(KEY_PREFIX)
    rows = await site.db.pool.fetch("select to_jsonb(k) as row from worker_keys k")
    assert site.account.key not in str(rows)
    assert len(await site.db.pool.fetchval("select key_hash from worker_keys")) == 32


async def test_only_the_accounts_own_key_lets_a_worker_in(site):
    keys = KeyRing(site.db)
    other = await add_account(site.db, None, "other", "usr_other")
    verified = await keys.verify(site.account.account_id, site.account.key)
    assert verified.generation == 1
    for account_id, key in [
        (site.account.account_id, other.key),
        (site.account.account_id, site.account.key + "x"),
        (site.account.account_id, ""),
        (new_id(), site.account.key),
    ]:
        with pytest.raises(NotSignedIn):
            await keys.verify(account_id, key)


async def test_another_vrchat_user_is_refused_with_the_right_key(site):
    verified = await KeyRing(site.db).verify(site.account.account_id, site.account.key)
    with pytest.raises(NotSignedIn):
        verified.worker(new_id(), "usr_somebody_else")
    assert verified.worker(site.worker.worker_id, "usr_1") == site.worker


async def test_after_a_rotation_the_new_key_works_and_the_old_one_does_not(site):
    keys = KeyRing(site.db)
    await keys.verify(site.account.account_id, site.account.key)
    fresh = await rotate_key(site.db, None, site.account.account_id)
    assert (await keys.verify(fresh.account_id, fresh.key)).generation == 2
    with pytest.raises(NotSignedIn):
        await keys.verify(site.account.account_id, site.account.key)


async def test_a_revoked_key_is_refused_until_a_rotation(site):
    keys = KeyRing(site.db)
    await keys.verify(site.account.account_id, site.account.key)
    await revoke_key(site.db, None, site.account.account_id)
    with pytest.raises(NotSignedIn):
        await keys.verify(site.account.account_id, site.account.key)
    fresh = await rotate_key(site.db, None, site.account.account_id)
    await keys.verify(fresh.account_id, fresh.key)


async def test_the_transaction_asks_again_when_another_process_remembers_an_old_key(site):
    stale_process = await Database.open(site.db.url)
    try:
        keys = KeyRing(stale_process)
        await keys.verify(site.account.account_id, site.account.key)
        await rotate_key(site.db, None, site.account.account_id)
        # No wake channel here: that process still takes the old key for good.
        worker = (await keys.verify(site.account.account_id, site.account.key)).worker(new_id(), "usr_1")
        with pytest.raises(NotSignedIn):
            await site.lease(worker)
    finally:
        await stale_process.close()


async def test_a_key_that_was_verified_once_costs_no_statement_again(site):
    keys = KeyRing(site.db)
    await keys.verify(site.account.account_id, site.account.key)
    sent = site.db.statements
    for _ in range(5):
        await keys.verify(site.account.account_id, site.account.key)
        await keys.require_enabled(site.account.account_id)
    assert site.db.statements == sent


async def test_a_read_that_began_before_a_rotation_is_not_remembered(site):
    keys = KeyRing(site.db)
    async with site.db.pool.acquire() as blocker, blocker.transaction():
        await blocker.execute("lock table worker_keys in access exclusive mode")
        reading = asyncio.create_task(keys.verify(site.account.account_id, site.account.key))
        from lastcall.testing.locks import wait_until_blocked

        await wait_until_blocked(site.db, "cools_for", by=blocker.get_server_pid())
        # What a rotation in another process says over the wake channel, while the read is under way.
        from lastcall.connections.signals import key_drop

        site.db.bus.deliver([key_drop(site.account.account_id)])
    await reading
    sent = site.db.statements
    await keys.verify(site.account.account_id, site.account.key)
    assert site.db.statements == sent + 1


async def test_an_account_in_any_other_state_than_ready_is_disabled(site):
    for state in set(AccountState) - {AccountState.READY}:
        await site.db.pool.execute(
            "update accounts set state = $1, cooldown_until = lastcall_now() + interval '1 hour'", state.value
        )
        keys = KeyRing(site.db)
        await keys.verify(site.account.account_id, site.account.key)
        with pytest.raises(Disabled) as disabled:
            await keys.require_enabled(site.account.account_id)
        assert disabled.value.code == "account_state"
        assert (disabled.value.retry_after is not None) == (state is AccountState.COOLDOWN)
        with pytest.raises(Disabled):
            await site.lease()


async def test_a_cooled_account_is_ready_again_without_anybody_writing_it(site, test_clock):
    await test_clock.freeze()
    await site.db.pool.execute(
        "update accounts set state = 'cooldown', cooldown_until = lastcall_now() + interval '1 minute'"
    )
    with pytest.raises(Disabled):
        await site.lease()
    await test_clock.advance(timedelta(minutes=1))
    await KeyRing(site.db).require_enabled(site.account.account_id)
    assert (await site.lease()).fencing_token == FIRST_TOKEN


async def test_switches_and_states_are_seen_at_once_by_who_remembers(site):
    keys = KeyRing(site.db)
    await keys.require_enabled(site.account.account_id)
    await set_fleet_switch(site.db, None, is_on=True)
    with pytest.raises(Disabled):
        await keys.require_enabled(site.account.account_id)
    await set_fleet_switch(site.db, None, is_on=False)
    await keys.require_enabled(site.account.account_id)
    await set_account_switch(site.db, None, site.account.account_id, is_on=True)
    with pytest.raises(Disabled):
        await keys.require_enabled(site.account.account_id)
    await set_account_switch(site.db, None, site.account.account_id, is_on=False)
    await set_account_state(site.db, None, site.account.account_id, AccountState.QUARANTINED)
    with pytest.raises(Disabled):
        await keys.require_enabled(site.account.account_id)


async def test_only_operators_touch_accounts(site):
    person = Actor(site.owner_id, "Owner", is_operator=False)
    for attempt in (
        lambda: add_account(site.db, person, "mine", "usr_mine"),
        lambda: rotate_key(site.db, person, site.account.account_id),
        lambda: revoke_key(site.db, person, site.account.account_id),
        lambda: set_fleet_switch(site.db, person, is_on=True),
    ):
        with pytest.raises(NotAllowed):
            await attempt()


async def test_an_account_that_cannot_be_is_refused_with_its_reason(site):
    for alias, user, error in (
        ("Not An Alias", "usr_2", Invalid),
        ("fine", "no spaces here", Invalid),
        ("account-1", "usr_2", Conflict),
        ("fine", "usr_1", Conflict),
    ):
        with pytest.raises(error) as refusal:
            await add_account(site.db, None, alias, user)
        assert refusal.value.advice
    assert await site.db.pool.fetchval("select count(*) from accounts") == 1


@pytest.fixture
async def elsewhere(site):
    """The server's process, which hears nothing of what commands of the host change."""
    database = await Database.open(site.db.url)
    yield database
    await database.close()


async def test_a_key_that_a_command_made_is_taken_by_a_server_that_was_told_nothing(site, elsewhere):
    keys = KeyRing(elsewhere)
    await keys.verify(site.account.account_id, site.account.key)
    fresh = await rotate_key(site.db, None, site.account.account_id)
    assert (await keys.verify(fresh.account_id, fresh.key)).generation == 2
    with pytest.raises(NotSignedIn):
        await keys.verify(site.account.account_id, site.account.key)


async def test_an_account_that_a_command_put_back_to_work_is_let_in_by_a_server_that_was_told_nothing(
    site, elsewhere
):
    keys = KeyRing(elsewhere)
    await set_account_state(site.db, None, site.account.account_id, AccountState.QUARANTINED)
    with pytest.raises(Disabled):
        await keys.require_enabled(site.account.account_id)
    await set_account_state(site.db, None, site.account.account_id, AccountState.READY)
    await keys.require_enabled(site.account.account_id)


@pytest.mark.parametrize("cut", [Cut.AFTER, Cut.LATE])
async def test_a_revocation_whose_commit_is_unclear_is_not_outlived_by_what_is_remembered(site, cut):
    async with CuttingProxy(site.db.url) as proxy:
        through = await Database.open(proxy.url)
        clock = FakeClock()
        keys = KeyRing(through, clock)
        await keys.verify(site.account.account_id, site.account.key)
        proxy.arm(cut)
        with pytest.raises(Unavailable):
            await revoke_key(through, None, site.account.account_id)
        if cut is Cut.LATE:
            await keys.verify(site.account.account_id, site.account.key)
            await proxy.release()
        with pytest.raises(NotSignedIn):
            await keys.verify(site.account.account_id, site.account.key)
        await through.close()
