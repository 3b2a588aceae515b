"""Defer: what waits, for how long, and when that is too long (WRK-18, RCV-09)."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from operations_world import World

from lastcall.db.database import Database
from lastcall.deadlines.signals import Signal
from lastcall.errors import Invalid, Unavailable
from lastcall.operations.machine import State
from lastcall.operations.schedules import late_at
from lastcall.operations.services.worker import WorkerSteps
from lastcall.protocol.constants import GRACE
from lastcall.testing.proxy import Cut, CuttingProxy

MINUTE = timedelta(minutes=1)


@pytest.mark.clause("WRK-18", "RCV-09")
@pytest.mark.parametrize(
    ("delay", "waits"),
    [
        (None, 60.0),
        (0.0, 1.0),
        (0.5, 1.0),
        (1.0, 1.0),
        (90.5, 90.5),
        (60.0000001, 60.000001),
        (900.0, 900.0),
    ],
)
async def test_a_deferral_waits_in_full_and_may_end_exactly_at_the_deadline(
    world: World, delay: float | None, waits: float
) -> None:
    now = await world.clock.freeze()
    operation_id, held = await world.claimed()
    settled = await world.steps.defer(world.worker, held, "rate_limit", delay)
    assert (settled.is_recorded, settled.state, settled.code) == (True, State.PENDING, "rate_limit")
    row = await world.row(operation_id)
    assert row["ready_at"] == now + timedelta(seconds=waits)
    assert row["due_at"] == now
    assert row["preflight_failures"] == 1
    await world.renew(timedelta(hours=1))
    await world.clock.advance(timedelta(seconds=waits) - timedelta(microseconds=1))
    assert await world.steps.claim(world.worker, world.lease, world.journal_id) is None
    await world.clock.advance(timedelta(microseconds=1))
    claimed = await world.claim()
    assert (claimed.operation_id, claimed.nonce != held.nonce) == (operation_id, True)


@pytest.mark.clause("RCV-09")
@pytest.mark.parametrize("delay", [900.001, 1800.0, 3600.0, 1e18, 1.7976931348623157e308])
async def test_a_delay_beyond_the_grace_is_missed_at_once(world: World, delay: float) -> None:
    await world.clock.freeze()
    operation_id, held = await world.claimed()
    settled = await world.steps.defer(world.worker, held, "rate_limit", delay)
    assert (settled.state, settled.code) == (State.MISSED, "late_window_elapsed")
    row = await world.row(operation_id)
    assert (row["state"], row["claim_nonce"], row["preflight_failures"]) == ("missed", None, 0)
    again = await world.steps.defer(world.worker, held, "rate_limit", delay)
    assert (again.is_recorded, again.code) == (False, "claim_unavailable")
    assert await world.row(operation_id) == row


@pytest.mark.clause("RCV-09")
@pytest.mark.parametrize("delay", [-1.0, -1e-9, math.nan, math.inf, -math.inf])
async def test_a_delay_that_is_no_delay_is_refused_and_leaves_the_claim(world: World, delay: float) -> None:
    operation_id, held = await world.claimed()
    before = await world.row(operation_id)
    with pytest.raises(Invalid) as refusal:
        await world.steps.defer(world.worker, held, "timeout", delay)
    assert refusal.value.field == "delayMs"
    assert await world.row(operation_id) == before


@pytest.mark.clause("WRK-18")
async def test_the_third_transient_failure_ends_it(world: World) -> None:
    await world.clock.freeze()
    await world.renew(timedelta(hours=1))
    operation_id, held = await world.claimed()
    for expected in (State.PENDING, State.PENDING, State.REJECTED):
        settled = await world.steps.defer(world.worker, held, "timeout", 1.0)
        assert settled.state is expected
        await world.clock.advance(timedelta(seconds=1))
        if expected is State.PENDING:
            held = world.held(await world.claim())
    assert (await world.row(operation_id))["code"] == "preflight_retries_exhausted"


@pytest.mark.clause("WRK-18")
async def test_submitted_work_is_never_deferred(world: World) -> None:
    operation_id, held = await world.submitted()
    settled = await world.steps.defer(world.worker, held, "timeout", 1.0)
    assert not settled.is_recorded
    assert await world.state(operation_id) == "submitted"


@pytest.mark.clause("RCV-09")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    delay=st.floats(allow_nan=True, allow_infinity=True) | st.floats(0, 1000),
    used=st.integers(0, 15 * 60 * 1_000_000),
)
async def test_any_delay_is_compared_in_full_and_never_shortened(
    world: World, delay: float, used: int
) -> None:
    """Whatever the number, the row waits at least that long or not at all."""
    now = await world.clock.freeze()
    await world.run("delete from operations")
    await world.renew(timedelta(hours=1))
    due_at = now - timedelta(microseconds=used)
    operation_id, held = await world.claimed(due_at=due_at)
    if not math.isfinite(delay) or delay < 0:
        with pytest.raises(Invalid):
            await world.steps.defer(world.worker, held, "timeout", delay)
        assert await world.state(operation_id) == "claimed"
        return
    await world.steps.defer(world.worker, held, "timeout", delay)
    row = await world.row(operation_id)
    left = (due_at + GRACE - now) / timedelta(microseconds=1)
    wanted = max(delay, 1.0) * 1e6
    if row["state"] == "pending":
        waited = (row["ready_at"] - now) / timedelta(microseconds=1)
        assert wanted <= waited + 1e-3
        assert waited <= left
    else:
        assert row["state"] == "missed"
        assert wanted == math.inf or math.ceil(wanted) > left - 1


async def test_a_deferral_says_when_the_row_is_ready_and_when_it_is_late(world: World) -> None:
    now = await world.clock.freeze()
    _, held = await world.claimed()
    heard: list[Signal] = []
    world.db.bus.subscribe(Signal, heard.append)
    await world.steps.defer(world.worker, held, "timeout", 5.0)
    assert heard == [
        Signal("operation_late_pending", late_at(now)),
        Signal(f"work:{world.account_id}", now + timedelta(seconds=5)),
    ]


async def test_a_deferral_whose_commit_is_unclear_is_still_missed_in_time(world: World) -> None:
    """Due ten minutes ago, it is late in five: that must be armed although the answer never came."""
    await world.clock.freeze()
    due_at = await world.clock.now() - 10 * MINUTE
    operation_id, held = await world.claimed(due_at=due_at)
    async with CuttingProxy(world.db.url) as proxy:
        through = await Database.open(proxy.url)
        unclear: list[object] = []
        through.bus.subscribe_unclear(lambda messages, _xid: unclear.extend(messages))
        proxy.arm(Cut.AFTER)
        with pytest.raises(Unavailable):
            await WorkerSteps(through).defer(world.worker, held, "timeout", 5.0)
        await through.close()
    assert await world.state(operation_id) == "pending"
    assert Signal("operation_late_pending", late_at(due_at)) in unclear
    assert f"work:{world.account_id}" in {message.owner for message in unclear if isinstance(message, Signal)}
