"""Which account gets a club: the least loaded that works and has room; and one that leaves gives its clubs away."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any
from uuid import UUID

import pytest
from tests.connections.conftest import Site, build_site

from lastcall.connections import accounts, allocation, listeners, reassigning
from lastcall.connections.accounts import revoke_key, rotate_key, set_account_state
from lastcall.connections.allocation import allocate_account
from lastcall.connections.listeners import Coverage, TelemetryFailure, on_telemetry_failure
from lastcall.connections.reassigning import reassign_connection
from lastcall.connections.states import AccountState
from lastcall.connections.switches import set_account_limits, set_account_switch
from lastcall.db.ids import new_id
from lastcall.errors import Conflict, NotFound
from lastcall.testing.fleet import ready_account
from lastcall.testing.locks import wait_until_blocked

HOLD = "select id from accounts where id"
NO_HOLD = "select id from accounts where id = :account_id"


async def choose(site: Site) -> UUID:
    async with site.db.transaction() as tx:
        return await allocate_account(tx)


async def reassign(site: Site, to: UUID | None = None) -> UUID:
    return await reassign_connection(site.db, None, site.club_id, site.connection_id, to)


async def quarantine(site: Site) -> None:
    await set_account_state(site.db, None, site.account.account_id, AccountState.QUARANTINED)


async def one_place(site: Site, alias: str) -> UUID:
    """An account with a single place."""
    key = await ready_account(site.db, alias, f"usr_{alias}")
    await set_account_limits(site.db, None, key.account_id, capacity=1, reserved_headroom=0)
    return key.account_id


async def test_the_least_loaded_account_is_chosen_and_of_equals_the_first_by_alias(site: Site):
    b = await ready_account(site.db, "b", "usr_b")
    a = await ready_account(site.db, "a", "usr_a")
    assert await choose(site) == a.account_id
    await site.db.pool.execute("update connections set account_id = $1", a.account_id)
    assert await choose(site) in {site.account.account_id, b.account_id}
    assert await choose(site) == site.account.account_id


@pytest.mark.parametrize(
    "change",
    [
        *(f"state = '{state}'" for state in sorted(set(AccountState) - {AccountState.READY, "cooldown"})),
        "state = 'cooldown', cooldown_until = now() + interval '1 h'",
        "kill_switch = true",
        "capacity = 16, reserved_headroom = 15",
        "capacity = 1, reserved_headroom = 0",
    ],
)
async def test_an_account_that_does_not_work_or_has_no_room_beside_its_headroom_is_not_chosen(
    site: Site, change
):
    assert await choose(site) == site.account.account_id
    await site.db.pool.execute(f"update accounts set {change}")
    with pytest.raises(Conflict) as refusal:
        await choose(site)
    assert refusal.value.code == "no_account_free"
    assert "operator" in refusal.value.advice


async def test_an_account_that_no_collector_can_run_is_not_chosen(site: Site):
    await revoke_key(site.db, None, site.account.account_id)
    with pytest.raises(Conflict) as refusal:
        await choose(site)
    assert refusal.value.code == "no_account_free"
    await rotate_key(site.db, None, site.account.account_id)
    assert await choose(site) == site.account.account_id


async def test_an_account_whose_cooldown_is_over_is_chosen_again(site: Site):
    await site.db.pool.execute(
        "update accounts set state = 'cooldown', cooldown_until = now() - interval '1 s'"
    )
    assert await choose(site) == site.account.account_id


@pytest.mark.parametrize("state", sorted(AccountState))
async def test_only_an_account_that_leaves_gives_its_connections_away(site: Site, state):
    other = await ready_account(site.db, "other", "usr_other")
    await site.db.pool.execute(
        "update accounts set state = $1, cooldown_until = now() + interval '1 h' where id = $2",
        state,
        site.account.account_id,
    )
    if state in {"quarantined", "retiring", "retired"}:
        assert await reassign(site) == other.account_id
    else:
        with pytest.raises(Conflict) as refusal:
            await reassign(site, other.account_id)
        assert refusal.value.code == "account_not_leaving"
        assert await site.db.pool.fetchval("select account_id from connections") == site.account.account_id


async def test_a_reassigned_connection_starts_over_with_its_epoch_and_tells_that_nothing_is_known(
    site: Site, monkeypatch
):
    told: list[TelemetryFailure] = []

    async def listen(_: object, failure: TelemetryFailure) -> None:
        told.append(failure)

    monkeypatch.setattr(listeners, "_telemetry", [])
    on_telemetry_failure(listen)
    held = await site.lease()
    other = await ready_account(site.db, "other", "usr_other")
    await site.db.pool.execute(
        "update connections set consecutive_failures = 4, backoff_until = now(), last_fault = 'x'"
    )
    await quarantine(site)
    await reassign(site)
    row = await site.db.pool.fetchrow(
        "select c.*, l.released_at from connections c join leases l on l.connection_id = c.id"
    )
    assert (row["account_id"], row["state"], row["epoch"]) == (other.account_id, "connecting", held.epoch)
    assert (row["consecutive_failures"], row["backoff_until"], row["last_fault"]) == (0, None, None)
    assert row["next_look_at"] is not None
    assert row["released_at"] is not None
    assert row["lease_generation"] > held.fencing_token
    assert [(one.connection_id, one.coverage) for one in told] == [
        (site.connection_id, Coverage.DEGRADED),  # the quarantine
        (site.connection_id, Coverage.UNKNOWN),
    ]


async def test_a_named_account_takes_a_club_into_its_headroom_but_not_above_its_capacity(site: Site):
    other = await ready_account(site.db, "other", "usr_other")
    await set_account_limits(site.db, None, other.account_id, capacity=1, reserved_headroom=1)
    await quarantine(site)
    with pytest.raises(Conflict) as refusal:
        await reassign(site)
    assert refusal.value.code == "no_account_free"
    assert await reassign(site, other.account_id) == other.account_id
    second = await build_site(site.db, 2)
    await quarantine(second)
    with pytest.raises(Conflict) as refusal:
        await reassign(second, other.account_id)
    assert refusal.value.code == "account_full"


async def test_no_club_goes_to_an_account_that_does_not_work_or_is_not_there(site: Site):
    other = await ready_account(site.db, "other", "usr_other")
    await set_account_state(site.db, None, other.account_id, AccountState.DEGRADED)
    await set_account_switch(site.db, None, other.account_id, is_on=False)
    await quarantine(site)
    for account_id, error, code in (
        (other.account_id, Conflict, "account_not_ready"),
        (site.account.account_id, Conflict, "account_not_ready"),
        (new_id(), NotFound, "account_unknown"),
    ):
        with pytest.raises(error) as refusal:
            await reassign(site, account_id)
        assert refusal.value.code == code


async def test_a_connection_that_is_ending_is_not_given_away(site: Site):
    await ready_account(site.db, "other", "usr_other")
    await quarantine(site)
    await site.db.pool.execute("update connections set state = 'disconnecting'")
    with pytest.raises(Conflict) as refusal:
        await reassign(site)
    assert refusal.value.code == "connection_over"


async def two_clubs_for_one_place(site: Site) -> tuple[Site, Site, UUID]:
    second = await build_site(site.db, 2)
    place = await one_place(site, "last")
    await quarantine(site)
    await quarantine(second)
    return site, second, place


async def take_the_last_place_twice(site: Site) -> list[UUID | BaseException]:
    """One takes it and is not through yet when the other one looks."""
    first, second, place = await two_clubs_for_one_place(site)
    async with site.db.transaction() as tx:
        own = await tx.raw.fetchval("select pg_backend_pid()")
        assert await allocate_account(tx) == place
        other = asyncio.create_task(reassign(second))
        waits = asyncio.create_task(wait_until_blocked(site.db, HOLD, by=own))
        await asyncio.wait((other, waits), return_when=asyncio.FIRST_COMPLETED)
        await tx.raw.execute(
            "update connections set account_id = $1 where id = $2", place, first.connection_id
        )
        waits.cancel()
    return await asyncio.gather(other, return_exceptions=True)


async def test_the_last_place_is_given_once(site: Site):
    (answer,) = await take_the_last_place_twice(site)
    assert isinstance(answer, Conflict)
    assert answer.code == "no_account_free"


async def test_without_the_hold_the_last_place_is_given_twice(site: Site, monkeypatch):
    """The twin: the guard is the lock on the account's row."""
    monkeypatch.setattr(allocation, "HOLD", NO_HOLD)
    (answer,) = await take_the_last_place_twice(site)
    assert isinstance(answer, UUID)
    served = await site.db.pool.fetchval("select count(*) from connections where account_id = $1", answer)
    assert served == 2


async def retire_while_a_club_comes(site: Site) -> tuple[BaseException | None, str]:
    """The account is retired while somebody gives it a club; answers what the retirement said, and the state."""
    other = await ready_account(site.db, "other", "usr_other")
    await quarantine(site)
    async with site.db.transaction() as tx:
        own = await tx.raw.fetchval("select pg_backend_pid()")
        assert await allocate_account(tx) == other.account_id
        retiring = asyncio.create_task(
            set_account_state(site.db, None, other.account_id, AccountState.RETIRED)
        )
        waits = asyncio.create_task(wait_until_blocked(site.db, HOLD, by=own))
        await asyncio.wait((retiring, waits), return_when=asyncio.FIRST_COMPLETED)
        await tx.raw.execute("update connections set account_id = $1", other.account_id)
        waits.cancel()
    (answer,) = await asyncio.gather(retiring, return_exceptions=True)
    state = await site.db.pool.fetchval("select state from accounts where id = $1", other.account_id)
    return answer, state


async def test_an_account_that_gets_a_club_meanwhile_is_not_retired(site: Site):
    answer, state = await retire_while_a_club_comes(site)
    assert isinstance(answer, Conflict)
    assert (answer.code, state) == ("account_has_connections", "ready")


async def test_without_the_hold_a_retired_account_gets_a_club(site: Site, monkeypatch):
    """The twin: the guard is the lock on the account's row."""
    monkeypatch.setattr(allocation, "HOLD", NO_HOLD)
    assert await retire_while_a_club_comes(site) == (None, "retired")


async def goes_ahead_of_an_authorization(site: Site, change: Coroutine[Any, Any, object]) -> bool:
    """Whether the change is through while an authorization of the old account still holds its gates."""
    async with site.db.pool.acquire() as authorizing, authorizing.transaction():
        await authorizing.execute("select lock_fleet_and_account_shared($1)", site.account.account_id)
        await authorizing.execute(
            "select from connection_gates where connection_id = $1 for share", site.connection_id
        )
        changing = asyncio.ensure_future(change)
        waits = asyncio.create_task(wait_until_blocked(site.db, "", by=authorizing.get_server_pid()))
        done, _ = await asyncio.wait((changing, waits), return_when=asyncio.FIRST_COMPLETED)
        waits.cancel()
    await changing
    return changing in done


async def test_a_takeover_and_a_quarantine_wait_for_an_authorization_under_way(site: Site):
    await ready_account(site.db, "other", "usr_other")
    assert not await goes_ahead_of_an_authorization(site, quarantine(site))
    assert not await goes_ahead_of_an_authorization(site, reassign(site))


async def test_without_the_gates_they_go_ahead_of_it(site: Site, monkeypatch):
    """The twin: the guards are the connection's gate and the account's."""

    async def no_gate(*_: object) -> bool:
        return True

    async def no_gates(*_: object) -> list[tuple[UUID, UUID]]:
        return []

    await ready_account(site.db, "other", "usr_other")
    monkeypatch.setattr(reassigning, "raise_gate", no_gate)
    monkeypatch.setattr(accounts, "lock_account", no_gate)
    monkeypatch.setattr(accounts, "raise_gates_of_account", no_gates)
    assert await goes_ahead_of_an_authorization(site, quarantine(site))
    assert await goes_ahead_of_an_authorization(site, reassign(site))
