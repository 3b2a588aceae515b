"""The allowance: never above a limit, in no calendar minute and in no sixty seconds, whoever asks."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lastcall.connections.allowance import reserve
from lastcall.connections.switches import (
    set_account_limits,
    set_account_switch,
    set_connection_limit,
    set_fleet_limit,
)
from lastcall.db.database import Database
from lastcall.errors import Conflict, Disabled
from lastcall.testing.clock import TestClock

START = datetime(2026, 3, 1, 20, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Grant:
    at: datetime
    amount: int


def check_never_above(limit: int, grants: list[Grant]) -> None:
    """No calendar minute and no sixty seconds hold more than ``limit``."""
    by_minute: Counter[datetime] = Counter()
    for grant in grants:
        by_minute[grant.at.replace(second=0, microsecond=0)] += grant.amount
    assert all(amount <= limit for amount in by_minute.values()), by_minute
    for end in grants:
        window = [grant.amount for grant in grants if end.at - MINUTE < grant.at <= end.at]
        assert sum(window) <= limit, (end, window)


async def ask_until(site, test_clock, until: datetime, *, amount: int, held, work: timedelta) -> list[Grant]:
    """Reserve again and again as a busy worker does, coming back exactly when it was told to."""
    grants = []
    while (now := await test_clock.now()) < until:
        reservation = await reserve(site.db, site.worker, amount, held)
        if reservation.is_granted:
            grants.append(Grant(now, amount))
            await test_clock.set(now + work)
        else:
            assert reservation.retry is not None
            assert reservation.retry > timedelta(0)
            await test_clock.set(now + reservation.retry)
    return grants


@pytest.mark.clause("BUD-07")
async def test_two_processes_of_one_account_never_pass_its_limit_together(site, test_clock: TestClock):
    await test_clock.freeze(START + timedelta(seconds=20))
    await set_account_limits(site.db, None, site.worker.account_id, requests_per_minute=10)
    other_process = await Database.open(site.db.url)
    try:
        answers = await asyncio.gather(
            *(
                reserve(db, worker, 1, None)
                for db, worker in itertools.product((site.db, other_process), [site.worker] * 10)
            )
        )
    finally:
        await other_process.close()
    assert sum(answer.is_granted for answer in answers) == 10


async def test_without_the_row_lock_two_processes_pass_the_limit(site, test_clock: TestClock):
    """The twin: the guard is the lock on the scope's row."""
    await test_clock.freeze(START + timedelta(seconds=20))
    await set_account_limits(site.db, None, site.worker.account_id, requests_per_minute=10)
    await reserve(site.db, site.worker, 1, None)
    source = await site.db.pool.fetchval("select pg_get_functiondef('reserve_allowance'::regproc)")
    charging = "    foreach v_scope in array v_scopes loop\n        perform allowance_charge"
    unlocked = source.replace(" for no key update;", ";").replace(
        charging, f"    perform pg_sleep(0.2);\n{charging}"
    )
    assert unlocked.count("pg_sleep") == 1
    assert "for no key update" not in unlocked
    await site.db.pool.execute(unlocked)
    answers = await asyncio.gather(*(reserve(site.db, site.worker, 2, None) for _ in range(8)))
    assert sum(2 for answer in answers if answer.is_granted) > 9


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    limit=st.integers(1, 40),
    steps=st.lists(st.tuples(st.integers(1, 10), st.integers(0, 70_000)), min_size=5, max_size=40),
    start=st.integers(0, 59_999),
)
async def test_no_minute_and_no_sixty_seconds_hold_more_than_the_limit(
    site, test_clock: TestClock, limit, steps, start
):
    await site.db.pool.execute("truncate allowances")
    await set_account_limits(site.db, None, site.worker.account_id, requests_per_minute=limit)
    now = START + timedelta(milliseconds=start)
    await test_clock.freeze(now)
    grants = []
    for amount, pause in steps:
        reservation = await reserve(site.db, site.worker, amount, None)
        assert reservation.limit == min(limit, 30)
        if reservation.is_granted:
            grants.append(Grant(now, amount))
            assert reservation.window == now.replace(second=0, microsecond=0) + MINUTE - now
        elif amount > limit:
            assert reservation.retry is None
        else:
            assert reservation.retry is not None
            assert reservation.retry > timedelta(0)
        now += timedelta(milliseconds=pause)
        await test_clock.set(now)
    check_never_above(min(limit, 30), grants)


async def test_a_busy_worker_gets_its_whole_limit_each_minute(site, test_clock: TestClock):
    await test_clock.freeze(START)
    held = await site.lease()
    await site.set("leases", expires_at=START + timedelta(days=1))
    grants = await ask_until(
        site, test_clock, START + 15 * MINUTE, amount=2, held=held, work=timedelta(seconds=1)
    )
    check_never_above(4, grants)
    assert 28 <= len(grants) <= 30


async def test_each_window_opens_at_a_moment_of_its_own(site, test_clock: TestClock):
    moments = [
        await site.db.pool.fetchval(
            "select allowance_opening($1, $2)", site.worker.account_id, START + minute * MINUTE
        )
        - (START + minute * MINUTE)
        for minute in range(60)
    ]
    assert all(timedelta(0) <= moment < timedelta(seconds=10) for moment in moments)
    assert len(set(moments)) > 50

    await test_clock.freeze(START)
    early = await reserve(site.db, site.worker, 1, None)
    assert early.retry == moments[0]
    await test_clock.advance(moments[0])
    assert (await reserve(site.db, site.worker, 1, None)).is_granted


async def test_the_last_seconds_of_a_window_grant_nothing_that_could_not_be_used(site, test_clock: TestClock):
    await test_clock.freeze(START + timedelta(seconds=56))
    late = await reserve(site.db, site.worker, 1, None)
    assert not late.is_granted
    assert late.retry is not None
    assert timedelta(seconds=4) <= late.retry < timedelta(seconds=14)


async def test_the_identity_read_is_charged_to_the_account_alone(site, test_clock: TestClock):
    await test_clock.freeze(START + timedelta(seconds=20))
    await site.lease()
    for _ in range(6):
        assert (await reserve(site.db, site.worker, 1, None)).is_granted
    scopes = await site.db.pool.fetch("select scope, granted from allowances order by scope")
    assert {row["scope"].split(":")[0]: row["granted"] for row in scopes} == {"account": 6, "fleet": 6}


@pytest.mark.clause("BUD-02")
async def test_a_limit_below_the_amount_is_said_to_be_hopeless_and_never_raised(site, test_clock: TestClock):
    await test_clock.freeze(START + timedelta(seconds=20))
    held = await site.lease()
    await set_connection_limit(site.db, None, site.club_id, site.connection_id, 1)
    answer = await reserve(site.db, site.worker, 2, held)
    assert (answer.is_granted, answer.limit, answer.retry) == (False, 1, None)
    limits = await site.db.pool.fetchval("select requests_per_minute from connections")
    assert limits == 1
    assert await site.db.pool.fetchval("select coalesce(sum(granted), 0) from allowances") == 0


@pytest.mark.parametrize("scope", ["fleet", "account", "connection"])
async def test_the_lowest_of_the_three_limits_binds(site, test_clock: TestClock, scope):
    await test_clock.freeze(START + timedelta(seconds=20))
    held = await site.lease()
    await set_connection_limit(site.db, None, site.club_id, site.connection_id, 30)
    match scope:
        case "fleet":
            await set_fleet_limit(site.db, None, 3)
        case "account":
            await set_account_limits(site.db, None, site.worker.account_id, requests_per_minute=3)
        case "connection":
            await set_connection_limit(site.db, None, site.club_id, site.connection_id, 3)
    answers = [await reserve(site.db, site.worker, 1, held) for _ in range(4)]
    assert [answer.is_granted for answer in answers] == [True, True, True, False]
    assert {answer.limit for answer in answers} == {3}


async def test_a_reservation_needs_the_lease_and_an_account_that_may_work(site, test_clock: TestClock):
    await test_clock.freeze(START + timedelta(seconds=20))
    held = await site.lease()
    stranger = site.other_worker()
    with pytest.raises(Conflict) as refusal:
        await reserve(site.db, stranger, 1, held)
    assert refusal.value.code == "stale_lease"
    await set_account_switch(site.db, None, site.worker.account_id, is_on=True)
    for lease in (held, None):
        with pytest.raises(Disabled) as disabled:
            await reserve(site.db, site.worker, 1, lease)
        assert disabled.value.code == "account_switch"
