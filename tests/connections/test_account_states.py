"""An account's state moves by its table alone, whoever moves it, and only a ready one works."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest

from lastcall.connections import listeners
from lastcall.connections.account_states import MOVES, SETTABLE, Mover, may_move, moves_of_operator
from lastcall.connections.accounts import add_account, set_account_state
from lastcall.connections.allowance import reserve
from lastcall.connections.failures import record_failure
from lastcall.connections.hello import Journal, say_hello
from lastcall.connections.leases import take_lease
from lastcall.connections.listeners import Coverage, TelemetryFailure, on_telemetry_failure
from lastcall.connections.overview import overview
from lastcall.connections.states import AccountState
from lastcall.connections.worker import Worker
from lastcall.db.ids import new_id
from lastcall.errors import Conflict, Disabled, Invalid
from lastcall.protocol.outcomes import Code
from lastcall.testing.clock import TestClock

OTHERS = sorted(set(AccountState) - {AccountState.READY})


async def put(site, state: AccountState) -> None:
    """Whatever led there; a cooldown that is not over."""
    await site.db.pool.execute(
        "update accounts set state = $1, cooldown_until = case when $1 = 'cooldown' then now() + interval '1 h' end",
        state.value,
    )


async def state_of(site) -> AccountState:
    return AccountState(await site.db.pool.fetchval("select state from accounts"))


def test_every_state_has_its_moves_and_no_account_is_lost():
    assert set(MOVES) == set(AccountState)
    assert {"ready", "degraded", "quarantined", "retiring", "retired"} == SETTABLE
    assert all(may_move(Mover.OPERATOR, state, AccountState.READY) for state in AccountState)
    assert not any(may_move(Mover.COLLECTOR, state, AccountState.READY) for state in OTHERS)


@pytest.mark.parametrize("state", AccountState)
async def test_an_operator_moves_an_account_where_the_table_says_and_nowhere_else(site, state):
    await site.db.pool.execute("update connections set state = 'disconnected'")
    went = {}
    for to in AccountState:
        await put(site, state)
        try:
            await set_account_state(site.db, None, site.account.account_id, to)
            went[to] = "went"
        except (Conflict, Invalid) as refusal:
            went[to] = refusal.code
        assert await state_of(site) is (to if went[to] == "went" else state)
    for to, answer in went.items():
        if to not in SETTABLE:
            assert answer == "account_state_not_settable"
        else:
            right = to is state or to in moves_of_operator(state)
            assert answer == ("went" if right else "account_state_move")


@pytest.mark.parametrize(
    ("state", "code", "to"),
    [
        (state, code, to)
        for state, (code, to) in itertools.product(
            AccountState,
            ((Code.RATE_LIMIT, AccountState.COOLDOWN), (Code.AUTHENTICATION, AccountState.AUTH_REQUIRED)),
        )
    ],
)
async def test_what_a_collector_reports_moves_an_account_where_the_table_says(site, state, code, to):
    await put(site, state)
    await record_failure(site.db, site.worker, None, code, 60.0)
    assert await state_of(site) is (to if may_move(Mover.COLLECTOR, state, to) else state)


async def test_a_new_account_is_let_in_only_once_an_operator_says_that_it_is_ready(site):
    key = await add_account(site.db, None, "young", "usr_young")
    worker = Worker(key.account_id, key.generation, new_id(), "usr_young")
    journal = Journal(new_id(), True)
    with pytest.raises(Disabled) as refusal:
        await say_hello(site.db, worker, journal, "1.0")
    assert refusal.value.code == "account_state"
    await set_account_state(site.db, None, key.account_id, AccountState.READY)
    assert (await say_hello(site.db, worker, journal, "1.0")).account_state == "ready"


@pytest.mark.clause("WRK-07", "COL-12")
@pytest.mark.parametrize("state", OTHERS)
async def test_no_disabled_account_gets_a_hello_a_lease_or_requests(site, test_clock: TestClock, state):
    """The degraded one is disabled too."""
    held = await site.lease()
    await put(site, state)
    steps = (
        lambda: say_hello(site.db, site.worker, Journal(new_id(), True), "1.0"),
        lambda: take_lease(site.db, site.worker, site.club_id, site.connection_id),
        lambda: reserve(site.db, site.worker, 1, None),
        lambda: reserve(site.db, site.worker, 2, held, is_write=True),
    )
    for step in steps:
        with pytest.raises(Disabled) as refusal:
            await step()
        assert refusal.value.code == "account_state"
    assert await site.db.pool.fetchval("select coalesce(sum(granted), 0) from allowances") == 0


async def test_a_cooldown_that_is_over_needs_nobody(site, test_clock: TestClock):
    await record_failure(site.db, site.worker, None, Code.RATE_LIMIT, 60.0)
    await test_clock.advance(timedelta(seconds=61))
    assert await site.lease() is not None


async def test_an_account_is_retired_only_when_no_connection_is_left(site):
    await site.db.pool.execute("update connections set state = 'disconnecting'")
    with pytest.raises(Conflict) as refusal:
        await set_account_state(site.db, None, site.account.account_id, AccountState.RETIRED)
    assert refusal.value.code == "account_has_connections"
    assert await state_of(site) is AccountState.READY
    await site.db.pool.execute("update connections set state = 'disconnected'")
    await set_account_state(site.db, None, site.account.account_id, AccountState.RETIRED)
    assert await state_of(site) is AccountState.RETIRED


async def test_the_overview_offers_only_moves_that_are_not_refused(site):
    async def moves() -> tuple[AccountState, ...]:
        async with site.db.read() as tx:
            return (await overview(tx, None)).accounts[0].moves

    assert AccountState.RETIRED not in await moves()
    await site.db.pool.execute("update connections set state = 'disconnected'")
    assert AccountState.RETIRED in await moves()


async def test_taking_an_account_out_of_work_ends_its_leases(site):
    held = await site.lease()
    await set_account_state(site.db, None, site.account.account_id, AccountState.DEGRADED)
    row = await site.db.pool.fetchrow(
        "select released_at, lease_generation from leases join connections using (club_id)"
    )
    assert row["released_at"] is not None
    assert row["lease_generation"] > held.fencing_token


async def test_whoever_keeps_the_aggregates_is_told_once_that_they_are_incomplete(site, monkeypatch):
    told: list[TelemetryFailure] = []

    async def listen(_: object, failure: TelemetryFailure) -> None:
        told.append(failure)

    monkeypatch.setattr(listeners, "_telemetry", [])
    on_telemetry_failure(listen)
    for state in (AccountState.DEGRADED, AccountState.QUARANTINED, AccountState.RETIRING):
        await set_account_state(site.db, None, site.account.account_id, state)
    assert [(one.connection_id, one.coverage, one.code) for one in told] == [
        (site.connection_id, Coverage.DEGRADED, "account_state")
    ]


async def test_an_account_that_is_ready_again_looks_at_its_groups_before_it_writes(site):
    await record_failure(site.db, site.worker, None, Code.AUTHENTICATION, None)
    assert await site.db.pool.fetchval("select state from connections") == "auth_required"
    await set_account_state(site.db, None, site.account.account_id, AccountState.READY)
    row = await site.db.pool.fetchrow("select state, next_look_at, last_fault from connections")
    assert (row["state"], row["last_fault"]) == ("connecting", None)
    assert row["next_look_at"] is not None
