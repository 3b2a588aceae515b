"""Claims and leases: what is found behind what waits, what outlives what, and who is woken."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta

import pytest

from lastcall.connections.connect import set_features
from lastcall.connections.states import Feature
from lastcall.testing.routines import replace_routine
from tests.acceptance.desk import Desk, invitation, told

MINUTE = timedelta(minutes=1)


# --- what was put off hides nothing ----------------------------------------------------------------------------


async def put_off(desk: Desk) -> None:
    """105 operations that were due and wait for ten minutes more."""
    for start in (1, 101):
        await desk.queue(*[invitation(number) for number in range(start, min(start + 100, 106))])
    for _ in range(105):
        held = await desk.collector.claimed()
        told(await desk.collector("defer", claim=held["claim"], code="timeout", delayMs=600_000))


@pytest.mark.clause("WRK-19")
async def test_more_than_a_hundred_that_wait_do_not_hide_one_that_is_ready(desk: Desk) -> None:
    await put_off(desk)
    (ready,) = await desk.queue(invitation(200))
    assert (await desk.collector.claimed())["operationId"] == ready
    assert await desk.collector.claim() is None


async def test_twin_a_claim_that_looks_at_the_first_hundred_by_due_time_finds_none(desk: Desk) -> None:
    await put_off(desk)
    await desk.queue(invitation(200))
    await replace_routine(
        desk.db,
        "claim_operation",
        "and r.ready_at between v_earliest and v_now and r.due_at >= v_earliest",
        """and r.ready_at <= v_now and r.id in (
            select h.id from operations h
             where h.club_id = p_club and h.state = 'pending'
             order by h.due_at, h.id limit 100)""",
    )
    assert await desk.collector.claim() is None


# --- what a claim outlives -------------------------------------------------------------------------------------


async def test_a_claim_outlives_a_minute_of_waiting_for_the_allowance(desk: Desk) -> None:
    lease = desk.collector.lease
    held = await desk.claimed()
    limit = told(await desk.collector("allowance", amount=1, lease=lease))["limit"]
    while told(spent := await desk.collector("allowance", amount=1, lease=lease))["isGranted"]:
        assert limit > 0
    waits = timedelta(milliseconds=spent.json()["retryMs"])
    assert waits > timedelta(0)
    await desk.pass_by(max(waits, timedelta(seconds=61)))
    assert told(await desk.collector("allowance", amount=2, lease=lease))["isGranted"]
    assert told(await desk.collector.authorize(held))["isAuthorized"]


async def test_a_claim_does_not_outlive_its_lease(desk: Desk) -> None:
    await desk.pass_by(4 * MINUTE)
    held = await desk.claimed()
    assert held["lifeMs"] == 60_000
    await desk.pass_by(MINUTE)
    answer = told(await desk.collector.authorize(held))
    assert (answer["isAuthorized"], answer["code"]) == (False, "claim_unavailable")
    await desk.turn("claim_expiry")
    assert await desk.state(held) == ("pending", None)
    await desk.collector.take()
    again = await desk.collector.claimed()
    assert (again["operationId"], again["nonce"] != held["nonce"]) == (held["operationId"], True)


async def test_twin_a_claim_that_is_not_cut_by_its_lease_is_nobodys_for_three_minutes(desk: Desk) -> None:
    await replace_routine(
        desk.db,
        "claim_operation",
        "least(v_now + claim_life(), v_lease_until)",
        "v_now + claim_life()",
    )
    await desk.pass_by(4 * MINUTE)
    held = await desk.claimed()
    await desk.pass_by(MINUTE)
    await desk.turn("claim_expiry")
    assert (await desk.state(held))[0] == "claimed"
    await desk.collector.take()
    assert await desk.collector.claim() is None


# --- who is woken ----------------------------------------------------------------------------------------------


async def release(desk: Desk) -> None:
    told(await desk.collector("release", lease=desk.collector.lease))


async def test_a_release_offers_at_once_what_is_ready(desk: Desk) -> None:
    waiting = desk.another_collector()
    parked = asyncio.ensure_future(waiting("wait"))
    await desk.queue(invitation(1))
    assert not parked.done(), "the connection is held"
    await release(desk)
    assert told(await parked)["due"] == [desk.collector.place]
    await waiting.take()
    assert await waiting.claim() is not None


async def test_a_release_leaves_the_wake_for_what_is_still_to_come(desk: Desk) -> None:
    """In real time: the wait is held until then, and no longer."""
    await desk.clock.run_at(1)
    due_at = await desk.clock.now() + timedelta(seconds=2)
    (operation_id,) = await desk.at(due_at, invitation(1))
    await release(desk)
    waiting, began = desk.another_collector(), time.monotonic()
    assert told(await waiting("wait"))["due"] == [desk.collector.place]
    assert await desk.clock.now() >= due_at
    assert time.monotonic() - began < 20
    await waiting.take()
    found = await waiting.claim()
    assert found is not None
    assert found["operationId"] == operation_id


# --- the feature -----------------------------------------------------------------------------------------------


async def switch_off(desk: Desk) -> None:
    on = set(Feature) - {Feature.MEMBERSHIP_MANAGEMENT}
    await set_features(desk.db, None, desk.club_id, desk.connection_id, on)


async def test_a_feature_that_is_switched_off_after_the_claim_stops_the_write(desk: Desk) -> None:
    held = await desk.claimed()
    await switch_off(desk)
    answer = told(await desk.collector.authorize(held))
    assert (answer["isAuthorized"], answer["code"], answer["state"]) == (
        False,
        "feature_disabled",
        "rejected",
    )
    assert await desk.state(held) == ("rejected", "feature_disabled")
    assert await desk.notices() == [(held["operationId"], "rejected", "feature_disabled")]


async def test_twin_an_authority_that_does_not_ask_for_the_feature_lets_it_out(desk: Desk) -> None:
    await replace_routine(desk.db, "authority", "when not p_feature = any (s.features)", "when false")
    held = await desk.claimed()
    await switch_off(desk)
    assert told(await desk.collector.authorize(held))["isAuthorized"]
