"""Claim, authorize and lateness judge by the event themselves, wherever the fan-out is (EVT-09, RCV-07)."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from events_world import (
    HOUR,
    MINUTE,
    an_event,
    following,
    owner_named,
    retime,
    states,
)
from operations_world import World, assignment

from lastcall.deadlines.owner import Done, Stop
from lastcall.deadlines.signals import Signal
from lastcall.events.services.write import cancel_event, reinstate_event, remove_event
from lastcall.events.times import Timed, TimeTba
from lastcall.operations.machine import State
from lastcall.operations.schedules import late_at
from lastcall.testing.routines import replace_routine

CANCELLED = ("cancelled", "event_cancelled")
PENDING = ("pending", None)


async def row_times(world: World, operation_id: UUID) -> tuple[object, object]:
    row = await world.row(operation_id)
    return row["due_at"], row["ready_at"]


@pytest.mark.clause("EVT-09")
async def test_a_claim_passes_over_what_its_event_stopped_and_takes_the_next(world: World) -> None:
    now = await world.clock.freeze()
    event_id = await an_event(world, now)
    stopped = await following(world, event_id, 3, offset=timedelta(0))
    good = await world.one(assignment(9))
    await world.run("update operations set lane = 3")
    await cancel_event(world.db, world.owner, world.club_id, event_id)
    await reinstate_event(world.db, world.owner, world.club_id, event_id)
    assert (await world.claim()).operation_id == good
    assert await states(world, stopped) == [CANCELLED] * 3


@pytest.mark.clause("EVT-09")
async def test_a_claim_gives_what_moved_its_new_time(world: World) -> None:
    now = await world.clock.freeze()
    event_id = await an_event(world, now)
    (later,) = await following(world, event_id, offset=timedelta(0))
    (still,) = await following(world, event_id, first=2, offset=-2 * HOUR, actor=world.owner)
    await world.run("update operations set due_at = $1, ready_at = $1", now)
    heard: list[Signal] = []
    world.db.bus.subscribe(Signal, heard.append)
    await retime(world, event_id, Timed(now + 2 * HOUR))
    claimed = await world.claim()
    assert (claimed.operation_id, claimed.execute_before) == (still, 15 * MINUTE)
    assert await row_times(world, later) == (now + 2 * HOUR, now + 2 * HOUR)
    assert Signal(f"work:{world.account_id}", now + 2 * HOUR) in heard
    assert Signal("operation_late_pending", late_at(now + 2 * HOUR)) in heard
    assert await world.steps.claim(world.worker, world.lease, world.journal_id) is None


@pytest.mark.clause("EVT-09")
async def test_more_than_a_hundred_stopped_rows_do_not_hide_a_good_one(world: World) -> None:
    event_id = await an_event(world, await world.clock.freeze())
    stopped = await following(world, event_id, 150, offset=timedelta(0))
    good = await world.one(assignment(999))
    await world.run("update operations set lane = 3")
    await cancel_event(world.db, world.owner, world.club_id, event_id)
    assert (await world.claim()).operation_id == good
    assert set(await states(world, stopped)) == {CANCELLED}


async def test_twin_claim_without_a_verdict_hands_out_what_was_cancelled(world: World) -> None:
    await replace_routine(world.db, "claim_operation", "exit when v_is_linked is not true;", "exit;")
    event_id = await an_event(world, await world.clock.freeze())
    (stopped,) = await following(world, event_id, offset=timedelta(0))
    await cancel_event(world.db, world.owner, world.club_id, event_id)
    assert (await world.claim()).operation_id == stopped


@pytest.mark.clause("EVT-09")
@pytest.mark.parametrize("change", ["cancelled", "removed", "without a time", "moved"])
async def test_authorize_judges_by_the_event_before_the_fan_out_has_come(world: World, change: str) -> None:
    now = await world.clock.freeze()
    event_id = await an_event(world, now)
    (operation_id,) = await following(world, event_id, offset=timedelta(0))
    held = world.held(await world.claim())
    heard: list[Signal] = []
    match change:
        case "cancelled":
            await cancel_event(world.db, world.owner, world.club_id, event_id)
            await reinstate_event(world.db, world.owner, world.club_id, event_id)
            expected = ("event_cancelled", State.CANCELLED)
        case "removed":
            await remove_event(world.db, world.owner, world.club_id, event_id)
            expected = ("event_deleted", State.CANCELLED)
        case "without a time":
            await retime(world, event_id, TimeTba())
            await retime(world, event_id, Timed(now))
            expected = ("event_time_tba", State.CANCELLED)
        case _:
            await retime(world, event_id, Timed(now + HOUR))
            world.db.bus.subscribe(Signal, heard.append)
            expected = ("event_rescheduled", State.PENDING)
    verdict = await world.steps.authorize(world.worker, held, "assign_role", world.evidence())
    assert (verdict.code, verdict.state) == expected
    row = await world.row(operation_id)
    assert (row["state"], row["claim_nonce"], row["submitted_at"]) == (expected[1], None, None)
    if change == "moved":
        assert (row["due_at"], row["ready_at"], row["code"]) == (now + HOUR, now + HOUR, None)
        assert Signal(f"work:{world.account_id}", now + HOUR) in heard
        assert Signal("operation_late_pending", late_at(now + HOUR)) in heard


@pytest.mark.clause("EVT-09")
async def test_what_the_event_moved_later_is_not_late_for_authorize(world: World) -> None:
    """By its old time it would be missed."""
    now = await world.clock.freeze()
    await world.renew(HOUR)
    event_id = await an_event(world, now)
    (operation_id,) = await following(world, event_id, offset=-14 * MINUTE)
    held = world.held(await world.claim())
    await retime(world, event_id, Timed(now + 10 * MINUTE))
    await world.clock.advance(2 * MINUTE)
    verdict = await world.steps.authorize(world.worker, held, "assign_role", world.evidence())
    assert (verdict.code, verdict.state) == ("event_rescheduled", State.PENDING)
    assert await row_times(world, operation_id) == (now - 4 * MINUTE, now - 4 * MINUTE)


@pytest.mark.clause("RCV-07")
@pytest.mark.parametrize("state", ["pending", "claimed"])
async def test_lateness_asks_the_event_first(world: World, state: str) -> None:
    now = await world.clock.freeze()
    await world.renew(HOUR)
    later_id, same_id, off_id, gone_id, tba_id = [await an_event(world, now) for _ in range(5)]
    moved, missed, cancelled, removed, untimed = [
        (await following(world, event_id, first=n, offset=timedelta(0)))[0]
        for n, event_id in enumerate((later_id, same_id, off_id, gone_id, tba_id), 1)
    ]
    ids = (moved, missed, cancelled, removed, untimed)
    if state == "claimed":
        for _ in ids:
            await world.claim()
    await retime(world, later_id, Timed(now + HOUR))
    await cancel_event(world.db, world.owner, world.club_id, off_id)
    await reinstate_event(world.db, world.owner, world.club_id, off_id)
    await remove_event(world.db, world.owner, world.club_id, gone_id)
    await retime(world, tba_id, TimeTba())
    await world.clock.advance(15 * MINUTE + timedelta(microseconds=1))
    heard: list[Signal] = []
    world.db.bus.subscribe(Signal, heard.append)
    lateness = owner_named(world, f"operation_late_{state}")
    assert await lateness.run_pass(Stop()) == Done(5)
    assert await states(world, ids) == [
        PENDING,
        ("missed", "late_window_elapsed"),
        CANCELLED,
        ("cancelled", "event_deleted"),
        ("cancelled", "event_time_tba"),
    ]
    # A due time moved to the future clears an obsolete claim, and is heard of.
    assert (await world.row(moved))["claim_nonce"] is None
    assert await row_times(world, moved) == (now + HOUR, now + HOUR)
    assert Signal("operation_late_pending", late_at(now + HOUR)) in heard
    assert Signal(f"work:{world.account_id}", now + HOUR) in heard


@pytest.mark.clause("RCV-07")
async def test_lateness_misses_by_the_new_time_when_that_is_late_too(world: World) -> None:
    now = await world.clock.freeze()
    event_id = await an_event(world, now - HOUR)
    (operation_id,) = await following(world, event_id, offset=timedelta(0))
    await retime(world, event_id, Timed(now - 20 * MINUTE))
    await world.run("select count(*) from miss_late($1, $2)", [world.club_id], [operation_id])
    assert await states(world, [operation_id]) == [("missed", "late_window_elapsed")]
    assert (await world.row(operation_id))["due_at"] == now - 20 * MINUTE
