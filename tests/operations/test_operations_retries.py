"""The provider's backoff beside the due time: neither shortens the other."""

from __future__ import annotations

from datetime import timedelta

import pytest
from events_world import HOUR, MINUTE, an_event, fan_out, following, retime, states
from operations_world import World, assignment

from lastcall.events.services.write import cancel_event
from lastcall.events.times import Timed
from lastcall.operations.machine import State
from lastcall.testing.routines import replace_routine

LONG = 82_721.0
"""Seconds: a Retry-After that VRChat has been seen to give."""


@pytest.mark.clause("WRK-18")
async def test_a_backoff_of_most_of_a_day_is_missed_at_once_and_never_shortened(world: World) -> None:
    await world.clock.freeze()
    operation_id, held = await world.claimed()
    settled = await world.steps.defer(world.worker, held, "rate_limit", LONG)
    assert (settled.state, settled.code) == (State.MISSED, "late_window_elapsed")
    row = await world.row(operation_id)
    assert (row["retry_at"], row["claim_nonce"]) == (None, None)


@pytest.mark.clause("WRK-18")
async def test_the_grace_is_that_of_the_time_the_event_has_now(world: World) -> None:
    """The event moved two days, and the fan-out has not come: the long backoff fits."""
    now = await world.clock.freeze()
    event_id = await an_event(world, now)
    (operation_id,) = await following(world, event_id, offset=timedelta(0))
    held = world.held(await world.claim())
    await retime(world, event_id, Timed(now + 48 * HOUR))
    settled = await world.steps.defer(world.worker, held, "rate_limit", LONG)
    assert (settled.state, settled.code) == (State.PENDING, "rate_limit")
    row = await world.row(operation_id)
    assert (row["due_at"], row["ready_at"]) == (now + 48 * HOUR, now + 48 * HOUR)
    assert row["retry_at"] == now + timedelta(seconds=LONG)
    assert row["preflight_failures"] == 1

    # Moved back to before the backoff ends, it waits for that; its grace is the new time's.
    await retime(world, event_id, Timed(now + timedelta(seconds=LONG) - 10 * MINUTE))
    await fan_out(world)
    row = await world.row(operation_id)
    assert row["ready_at"] == row["retry_at"] == now + timedelta(seconds=LONG)
    assert row["due_at"] == row["ready_at"] - 10 * MINUTE


@pytest.mark.clause("WRK-18")
async def test_work_moved_earlier_is_not_tried_before_the_backoff_ends(world: World) -> None:
    operation_id, now = await moved_earlier_while_backing_off(world)
    await world.clock.advance(10 * MINUTE - timedelta(microseconds=1))
    assert await world.steps.claim(world.worker, world.lease, world.journal_id) is None
    await world.clock.advance(timedelta(microseconds=1))
    assert (await world.claim()).operation_id == operation_id
    assert (await world.row(operation_id))["retry_at"] == now + 10 * MINUTE


async def test_twin_that_forgets_the_backoff_asks_vrchat_too_early(world: World) -> None:
    await replace_routine(world.db, "fan_out_event", "greatest(v.due_at, o.retry_at)", "v.due_at")
    await world.run("alter table operations drop constraint operations_whole_check")
    operation_id, _ = await moved_earlier_while_backing_off(world)
    assert (await world.claim()).operation_id == operation_id


async def moved_earlier_while_backing_off(world: World) -> tuple[object, object]:
    now = await world.clock.freeze()
    await world.renew(HOUR)
    event_id = await an_event(world, now)
    (operation_id,) = await following(world, event_id, offset=timedelta(0))
    await world.steps.defer(world.worker, world.held(await world.claim()), "rate_limit", 600.0)
    await retime(world, event_id, Timed(now - MINUTE))
    await fan_out(world)
    return operation_id, now


async def test_a_deferral_of_what_its_event_stopped_ends_it(world: World) -> None:
    event_id = await an_event(world, await world.clock.freeze())
    (operation_id,) = await following(world, event_id, offset=timedelta(0))
    held = world.held(await world.claim())
    await cancel_event(world.db, world.owner, world.club_id, event_id)
    settled = await world.steps.defer(world.worker, held, "timeout", 1.0)
    assert (settled.is_recorded, settled.state, settled.code) == (True, State.CANCELLED, "event_cancelled")
    assert await states(world, [operation_id]) == [("cancelled", "event_cancelled")]


@pytest.mark.clause("WRK-19")
async def test_many_deferred_rows_do_not_hide_one_that_can_run(world: World) -> None:
    now = await world.clock.freeze()
    for start in (1, 101):
        await world.enqueue(*[assignment(start + n) for n in range(100)])
    await world.run("update operations set ready_at = $1, retry_at = $1", now + MINUTE)
    runnable = await world.one(assignment(999), due_at=now - timedelta(seconds=1))
    await world.run("update operations set lane = 3")
    assert (await world.claim()).operation_id == runnable
    assert await world.steps.claim(world.worker, world.lease, world.journal_id) is None
