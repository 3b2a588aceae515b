"""A fault of the aggregates alone leaves the connection as it is; the server judges what is one (COL-05)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.connections.conftest import Site
from tests.connections.membership_kit import S, look, looked, next_look, put, row

from lastcall.connections import failures
from lastcall.connections.connect import set_features
from lastcall.connections.failures import record_failure
from lastcall.connections.leases import release_lease
from lastcall.connections.listeners import Coverage, TelemetryFailure, on_telemetry_failure
from lastcall.connections.states import USABLE, AccountState, Feature
from lastcall.connections.worker import LeaseHeld
from lastcall.errors import Disabled
from lastcall.testing.clock import TestClock
from lastcall.testing.routines import replace_routine


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Coverage, str]]:
    """What coverage is told."""
    found: list[tuple[Coverage, str]] = []

    async def listener(_: Any, failure: TelemetryFailure) -> None:
        found.append((failure.coverage, failure.code))

    monkeypatch.setattr("lastcall.connections.listeners._telemetry", [])
    on_telemetry_failure(listener)
    return found


async def fail(site: Site, held: LeaseHeld, code: str, after: float | None = None, *, alone: bool = True):
    await record_failure(site.db, site.worker, held, code, after, telemetry_only=alone)


@pytest.mark.clause("COL-05")
async def test_aggregates_that_fail_alone_count_and_degrade_neither_connection_nor_set_a_backoff(site, told):
    held = await site.lease()
    for count in range(1, 6):
        await fail(site, held, "timeout", 900.0)
        found = await row(site)
        assert (found["state"], found["consecutive_failures"], found["backoff_until"]) == ("active", 0, None)
        assert (found["telemetry_failures"], found["last_fault"]) == (count, "timeout")
    assert told == [(Coverage.DEGRADED, "timeout")] * 5
    await release_lease(site.db, site.worker, held)
    assert timedelta(0) < await next_look(site) <= timedelta(minutes=1)
    await site.lease()


@pytest.mark.clause("COL-05")
@pytest.mark.parametrize("state", [S.CONNECTING, S.AWAITING_APPROVAL, S.DEGRADED, S.DISCONNECTING])
async def test_it_is_no_fault_of_the_aggregates_alone_while_the_connection_is_not_active(site, state):
    await put(site, state)
    await fail(site, await site.lease(), "timeout")
    found = await row(site)
    assert (found["state"], found["consecutive_failures"], found["telemetry_failures"]) == (state, 1, 0)
    assert found["backoff_until"] is not None


@pytest.mark.clause("COL-05")
@pytest.mark.parametrize("features", [[], [Feature.ANALYTICS]])
async def test_it_is_no_fault_of_the_aggregates_alone_where_nothing_else_is_switched_on(site, features):
    await set_features(site.db, None, site.club_id, site.connection_id, features)
    await fail(site, await site.lease(), "timeout")
    assert (await row(site))["backoff_until"] is not None


async def passes_whose_aggregates_fail(
    site: Site, test_clock: TestClock, features: list[Feature]
) -> list[Any]:
    """Four passes, each begun when the backoff of the one before is over; what the connection is after each."""
    await set_features(site.db, None, site.club_id, site.connection_id, features)
    found = []
    for _ in range(4):
        held = await site.lease()
        await fail(site, held, "timeout", 900.0)
        assert await look(site, held) in USABLE, "the readiness, in the same pass (COL-02)"
        await release_lease(site.db, site.worker, held)
        found.append(await row(site))
        await test_clock.advance(timedelta(seconds=900))
    return [(one["state"], one["consecutive_failures"], one["last_fault"]) for one in found]


@pytest.mark.clause("COL-05", "COL-11")
async def test_aggregates_that_are_all_there_is_back_off_and_degrade_until_a_pass_reads_them(
    site, test_clock
):
    await test_clock.freeze()
    assert await passes_whose_aggregates_fail(site, test_clock, [Feature.ANALYTICS]) == [
        (S.ACTIVE, 1, "timeout"),
        (S.ACTIVE, 2, "timeout"),
        (S.DEGRADED, 3, "timeout"),
        (S.DEGRADED, 4, "timeout"),
    ]
    assert await looked(site) is S.ACTIVE
    found = await row(site)
    assert (found["consecutive_failures"], found["backoff_until"], found["last_fault"]) == (0, None, None)


async def test_a_degraded_connection_with_work_of_its_own_works_again_though_its_aggregates_fail(
    site, test_clock
):
    await test_clock.freeze()
    await put(site, S.DEGRADED)
    seen = await passes_whose_aggregates_fail(site, test_clock, [Feature.ANALYTICS, Feature.POSTS])
    assert [state for state, _, _ in seen] == [S.ACTIVE] * 4


async def test_twin_a_look_that_ends_every_row_of_failures_never_lets_them_degrade_anything(site, test_clock):
    await test_clock.freeze()
    await replace_routine(
        site.db, "fails_at_its_work", "select p_connection.features", "select false and p_connection.features"
    )
    seen = await passes_whose_aggregates_fail(site, test_clock, [Feature.ANALYTICS])
    assert [(state, count) for state, count, _ in seen] == [(S.ACTIVE, 0)] * 4


async def faults_that_all_share(site: Site) -> None:
    await fail(site, await site.lease(), "membership")
    found = await row(site)
    assert (found["state"], found["telemetry_failures"]) == (S.AWAITING_INVITE, 0)
    await put(site, S.ACTIVE)
    await fail(site, await site.lease(), "rate_limit", 120.0)
    assert await site.db.pool.fetchval("select state from accounts") == AccountState.COOLDOWN
    await site.db.pool.execute("update accounts set state = 'ready', cooldown_until = null")
    await fail(site, await site.lease(), "authentication")
    assert await site.db.pool.fetchval("select state from accounts") == AccountState.AUTH_REQUIRED


@pytest.mark.clause("COL-05", "COL-11")
async def test_shared_faults_are_never_the_aggregates_alone_whatever_the_worker_says(site):
    await faults_that_all_share(site)
    assert (await row(site))["state"] == S.AUTH_REQUIRED


async def test_twin_a_server_that_believes_the_worker_lets_a_broken_connection_go_on(site, monkeypatch):
    monkeypatch.setattr(failures, "_is_of_telemetry_alone", lambda *_: True)
    await put(site, S.DEGRADED)
    await fail(site, await site.lease(), "timeout")
    assert (await row(site))["backoff_until"] is None


@pytest.mark.clause("COL-11")
async def test_an_ordinary_fault_backs_off_for_no_less_than_the_provider_asks(site, told, test_clock):
    await test_clock.freeze()
    held = await site.lease()
    await fail(site, held, "provider_unavailable", 3_600.0, alone=False)
    found = await row(site)
    assert found["backoff_until"] - await test_clock.now() == timedelta(hours=1)
    assert (found["state"], found["last_fault"]) == (S.ACTIVE, "provider_unavailable")
    assert told == [(Coverage.DEGRADED, "provider_unavailable")]


@pytest.mark.clause("COL-11", "RCV-10")
async def test_a_shared_429_stops_every_look_of_the_account_for_the_providers_time(site, told, test_clock):
    await test_clock.freeze()
    held = await site.lease()
    await fail(site, held, "rate_limit", 1_800.0)
    until = await site.db.pool.fetchval("select cooldown_until from accounts")
    assert until - await test_clock.now() == timedelta(minutes=30)
    assert told == [(Coverage.DEGRADED, "rate_limit")]
    await test_clock.advance(timedelta(minutes=30) - timedelta(milliseconds=1))
    with pytest.raises(Disabled):
        await site.lease()
    await test_clock.advance(timedelta(milliseconds=1))
    await site.lease()


async def test_failures_of_a_connection_that_waits_back_it_off_and_never_degrade_it(site):
    await put(site, S.AWAITING_APPROVAL)
    held = await site.lease()
    for _ in range(5):
        await fail(site, held, "network", alone=False)
    found = await row(site)
    assert (found["state"], found["consecutive_failures"]) == (S.AWAITING_APPROVAL, 5)


async def test_a_lost_membership_in_the_middle_of_the_work_waits_to_be_let_in_again(site, told):
    held = await site.lease()
    await fail(site, held, "membership", alone=False)
    found = await row(site)
    assert (found["state"], found["last_fault"], found["backoff_until"]) == (
        S.AWAITING_INVITE,
        "membership",
        None,
    )
    assert told == [(Coverage.UNKNOWN, "membership")]
    await release_lease(site.db, site.worker, held)
    assert timedelta(minutes=3) - timedelta(seconds=1) <= await next_look(site) <= timedelta(minutes=5)
    await fail(site, await site.lease(), "membership", alone=False)
    assert (await row(site))["state"] == S.AWAITING_INVITE


async def test_a_lost_sign_in_stops_what_works_and_forgets_nobody_who_waits_or_leaves(site):
    for state, expected in (
        (S.ACTIVE, S.AUTH_REQUIRED),
        (S.DEGRADED, S.AUTH_REQUIRED),
        (S.AWAITING_INVITE, S.AWAITING_INVITE),
        (S.DISCONNECTING, S.DISCONNECTING),
    ):
        await put(site, state)
        await record_failure(site.db, site.worker, None, "authentication", None)
        assert (await row(site))["state"] == expected
