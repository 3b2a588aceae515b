"""What an event does to the operations that follow it: moved, without a time, cancelled, removed."""

from __future__ import annotations

from datetime import date, timedelta
from uuid import UUID

import asyncpg
import pytest
from events_world import (
    HOUR,
    MINUTE,
    an_event,
    depend,
    fan_out,
    fanout,
    following,
    owner_named,
    retime,
    states,
)
from operations_world import World, assignment

from lastcall.deadlines.owner import Done, More, Stop
from lastcall.deadlines.signals import Signal
from lastcall.events.services.write import cancel_event, reinstate_event, remove_event
from lastcall.events.times import DateOnly, Timed, TimeTba
from lastcall.operations.schedules import late_at
from lastcall.testing.routines import replace_routine

CANCELLED = ("cancelled", "event_cancelled")
PENDING = ("pending", None)


async def row_times(world: World, operation_id: UUID) -> tuple[object, object]:
    row = await world.row(operation_id)
    return row["due_at"], row["ready_at"]


# --- moved ---------------------------------------------------------------------------------------------------


@pytest.mark.clause("EVT-03")
@pytest.mark.parametrize("by", [-HOUR, 3 * HOUR])
async def test_a_moved_event_moves_what_is_relative_to_it_and_nothing_else(
    world: World, by: timedelta
) -> None:
    now = await world.clock.freeze()
    event_id = await an_event(world, now + 5 * HOUR)
    (relative,) = await following(world, event_id, offset=-30 * MINUTE)
    (fixed,) = await following(world, event_id, first=2, due_at=now + 4 * HOUR)
    (immediate,) = await following(world, event_id, first=3)
    unlinked = await world.one(assignment(4), due_at=now + 4 * HOUR)
    heard: list[Signal] = []
    world.db.bus.subscribe(Signal, heard.append)

    await retime(world, event_id, Timed(now + 5 * HOUR + by))
    assert await fan_out(world) == [Done(1)]

    due_at = now + 5 * HOUR + by - 30 * MINUTE
    assert await row_times(world, relative) == (due_at, due_at)
    for untouched, time in ((fixed, now + 4 * HOUR), (immediate, now), (unlinked, now + 4 * HOUR)):
        assert await row_times(world, untouched) == (time, time)
        assert await world.state(untouched) == "pending"
    # Its collector waits for the new time, which may be an earlier one; and so does lateness.
    assert Signal(f"work:{world.account_id}", due_at) in heard
    assert Signal("operation_late_pending", late_at(due_at)) in heard


@pytest.mark.clause("EVT-03")
async def test_a_claim_for_the_old_time_loses_its_nonce_and_the_subject_stays(world: World) -> None:
    now = await world.clock.freeze()
    event_id = await an_event(world, now)
    (relative,) = await following(world, event_id, offset=timedelta(0))
    held = world.held(await world.claim())
    before = await world.row(relative)
    await retime(world, event_id, Timed(now + HOUR))
    await fan_out(world)
    row = await world.row(relative)
    assert (row["state"], row["claim_nonce"], row["due_at"]) == ("pending", None, now + HOUR)
    assert (row["actor_id"], row["revision"]) == (before["actor_id"], before["revision"])
    verdict = await world.steps.authorize(world.worker, held, "assign_role", world.evidence())
    assert (verdict.code, verdict.state) == ("claim_unavailable", None)

    # Whoever was the subject is checked when it is sent.
    await world.clock.advance(HOUR)
    await world.renew()
    held = world.held(await world.claim())
    await world.run("delete from staff_assignments")
    verdict = await world.steps.authorize(world.worker, held, "assign_role", world.evidence())
    assert verdict.code == "staff_permission"


@pytest.mark.clause("EVT-03")
async def test_work_moved_to_the_past_runs_at_once_and_is_missed_when_that_is_too_long_ago(
    world: World,
) -> None:
    now = await world.clock.freeze()
    event_id = await an_event(world, now + 5 * HOUR)
    (soon,) = await following(world, event_id, offset=timedelta(0))
    (late,) = await following(world, event_id, first=2, offset=-HOUR)
    await retime(world, event_id, Timed(now - MINUTE))
    await fan_out(world)
    assert (await world.claim()).operation_id == soon
    lateness = owner_named(world, "operation_late_pending")
    assert await lateness.run_pass(Stop()) == Done(1)
    assert (await states(world, [late])) == [("missed", "late_window_elapsed")]


async def test_a_waiting_dependent_that_is_moved_goes_on_waiting(world: World) -> None:
    now = await world.clock.freeze()
    event_id = await an_event(world, now + 5 * HOUR)
    creation, invitation = await following(world, event_id, 2, offset=timedelta(0))
    await depend(world, invitation, creation)
    await world.run("update operations set ready_at = null where id = $1", invitation)
    await retime(world, event_id, Timed(now + 6 * HOUR))
    await fan_out(world)
    assert await row_times(world, invitation) == (now + 6 * HOUR, None)
    assert await row_times(world, creation) == (now + 6 * HOUR, now + 6 * HOUR)


@pytest.mark.clause("DEP-07")
async def test_a_submitted_creation_keeps_its_time_when_the_event_moves(world: World) -> None:
    now = await world.clock.freeze()
    event_id = await an_event(world, now)
    submitted, claimed, pending = await following(world, event_id, 3, offset=timedelta(0))
    held = world.held(await world.claim())
    assert (await world.steps.authorize(world.worker, held, "assign_role", world.evidence())).is_authorized
    await world.claim()
    for creation in (submitted, claimed, pending):
        await world.run("update operations set kind = 'create_instance' where id = $1", creation)
    await retime(world, event_id, Timed(now + 2 * HOUR))
    await fan_out(world)
    assert await row_times(world, submitted) == (now, now)
    assert await world.state(submitted) == "submitted"
    for creation in (claimed, pending):
        assert await row_times(world, creation) == (now + 2 * HOUR, now + 2 * HOUR)
        assert await world.state(creation) == "pending"


# --- without a time, cancelled, removed ----------------------------------------------------------------------


@pytest.mark.clause("EVT-04")
@pytest.mark.parametrize("time", [TimeTba(), DateOnly(date(2040, 5, 1))], ids=["tba", "date only"])
async def test_without_an_exact_start_relative_work_is_cancelled_for_good(
    world: World, time: TimeTba | DateOnly
) -> None:
    now = await world.clock.freeze()
    event_id = await an_event(world, now)
    claimed, pending = await following(world, event_id, 2, offset=timedelta(0))
    (fixed,) = await following(world, event_id, first=3, due_at=now + HOUR)
    await world.claim()
    await retime(world, event_id, time)
    # The time comes back before anything went through the rows.
    await retime(world, event_id, Timed(now))
    await fan_out(world)
    assert await states(world, [claimed, pending, fixed]) == [("cancelled", "event_time_tba")] * 2 + [PENDING]
    assert (await world.row(claimed))["claim_nonce"] is None
    (anew,) = await following(world, event_id, first=4, offset=timedelta(0))
    await retime(world, event_id, Timed(now + HOUR))
    await fan_out(world)
    assert await states(world, [anew, claimed]) == [PENDING, ("cancelled", "event_time_tba")]


@pytest.mark.clause("EVT-05")
async def test_a_cancel_stops_all_that_is_unsent_and_nothing_else(world: World) -> None:
    now = await world.clock.freeze()
    await world.renew(HOUR)
    event_id = await an_event(world, now)
    other_id = await an_event(world, now + HOUR)
    done, submitted, claimed, pending = await following(world, event_id, 4, offset=timedelta(0))
    (fixed,) = await following(world, event_id, first=5, due_at=now + HOUR)
    (other,) = await following(world, other_id, first=6, offset=timedelta(0))
    for _ in range(2):
        held = world.held(await world.claim())
        await world.steps.authorize(world.worker, held, "assign_role", world.evidence())
        if held.operation_id == done:
            await world.run(
                "update operations set state = 'succeeded', completed_at = lastcall_now() where id = $1", done
            )
    assert (await world.claim()).operation_id == claimed
    kept = [await world.row(operation_id) for operation_id in (done, submitted, other)]

    await cancel_event(world.db, world.owner, world.club_id, event_id)
    await fan_out(world)
    assert await states(world, [claimed, pending, fixed]) == [CANCELLED] * 3
    assert [await world.row(operation_id) for operation_id in (done, submitted, other)] == kept
    cancelled = await world.row(claimed)
    assert (cancelled["completed_at"], cancelled["claim_nonce"]) == (now, None)


@pytest.mark.clause("EVT-05")
async def test_the_event_of_a_creation_stops_its_invitations_too(world: World) -> None:
    """Inherited, at once; beside an event of their own, when they would be sent. A creation that is over hands its
    event down all the same."""
    now = await world.clock.freeze()
    event_id, own_id = await an_event(world, now + HOUR), await an_event(world, now + HOUR)
    (creation,) = await following(world, event_id, due_at=now + HOUR)
    inheriting = await world.one(assignment(2), due_at=now + HOUR)
    (with_own,) = await following(world, own_id, first=3, offset=timedelta(0))
    await depend(world, inheriting, creation)
    await depend(world, with_own, creation)
    await world.run(
        "update operations set state = 'rejected', code = 'timeout', completed_at = lastcall_now() where id = $1",
        creation,
    )
    await cancel_event(world.db, world.owner, world.club_id, event_id)
    await reinstate_event(world.db, world.owner, world.club_id, event_id)
    await fan_out(world)
    assert await states(world, [inheriting, with_own]) == [CANCELLED, PENDING]
    await world.clock.advance(HOUR)
    await world.renew()
    assert await world.steps.claim(world.worker, world.lease, world.journal_id) is None
    assert await states(world, [with_own]) == [CANCELLED]


@pytest.mark.clause("EVT-05")
async def test_a_cancel_holds_across_pages_though_the_event_is_reinstated_between_them(world: World) -> None:
    event_id = await an_event(world, await world.clock.now() + HOUR)
    ids = await following(world, event_id, 150, offset=timedelta(0))
    await cancel_event(world.db, world.owner, world.club_id, event_id)
    await one_page(world, event_id)
    assert (await states(world, ids)).count(CANCELLED) == 100
    await reinstate_event(world.db, world.owner, world.club_id, event_id)
    await fan_out(world)
    assert set(await states(world, ids)) == {CANCELLED}


async def test_twin_that_asks_only_how_the_event_stands_sends_what_was_cancelled(world: World) -> None:
    await replace_routine(world.db, "was_cancelled", "OR (p_generation <> p_reviewed)", "")
    event_id = await an_event(world, await world.clock.now() + HOUR)
    ids = await following(world, event_id, 150, offset=timedelta(0))
    await cancel_event(world.db, world.owner, world.club_id, event_id)
    await one_page(world, event_id)
    await reinstate_event(world.db, world.owner, world.club_id, event_id)
    await fan_out(world)
    assert (await states(world, ids)).count(PENDING) == 50


@pytest.mark.clause("EVT-06")
async def test_a_removed_event_cancels_unsent_work(world: World) -> None:
    event_id = await an_event(world, await world.clock.now() + HOUR)
    (relative,) = await following(world, event_id, offset=timedelta(0))
    (fixed,) = await following(world, event_id, first=2)
    await remove_event(world.db, world.owner, world.club_id, event_id)
    await fan_out(world)
    assert await states(world, [relative, fixed]) == [("cancelled", "event_deleted")] * 2


@pytest.mark.clause("EVT-06")
async def test_no_operation_can_follow_the_event_of_another_club(world: World) -> None:
    """What is foreign cannot be written, so it can only be missing."""
    event_id = await an_event(world, await world.clock.now() + HOUR)
    operation_id = await world.one()
    await world.run("alter table events drop constraint events_club_id_fkey")
    await world.run("update events set club_id = gen_random_uuid()")
    with pytest.raises(asyncpg.ForeignKeyViolationError):
        await world.run(
            "update operations set event_id = $1, event_cancel_generation = 0, event_tba_generation = 0 where id = $2",
            event_id,
            operation_id,
        )


# --- the fan-out ---------------------------------------------------------------------------------------------


async def one_page(world: World, event_id: UUID) -> None:
    await world.run("select * from fan_out_event($1, $2, 100)", world.club_id, event_id)


@pytest.mark.clause("EVT-07")
async def test_the_fan_out_goes_by_a_hundred_rows_until_it_is_through(world: World) -> None:
    now = await world.clock.freeze()
    event_id = await an_event(world, now + HOUR)
    ids = await following(world, event_id, 250, offset=timedelta(0))
    await world.one(assignment(999), due_at=now + HOUR)
    await retime(world, event_id, Timed(now + 2 * HOUR))
    moved = "select count(*) from operations where due_at = $1"
    for page in (1, 2):
        await one_page(world, event_id)
        assert await world.run(moved, now + 2 * HOUR) == page * 100
        assert await world.run("select after from operation_fanouts") == sorted(ids)[page * 100 - 1]
    assert await fan_out(world) == [Done(1)]
    assert await world.run(moved, now + 2 * HOUR) == 250
    assert await world.run("select count(*) from operation_fanouts") == 0


@pytest.mark.clause("EVT-07")
async def test_a_change_between_pages_begins_anew(world: World) -> None:
    now = await world.clock.freeze()
    event_id = await an_event(world, now + HOUR)
    await following(world, event_id, 150, offset=timedelta(0))
    await retime(world, event_id, Timed(now + 2 * HOUR))
    await one_page(world, event_id)
    await retime(world, event_id, Timed(now + 3 * HOUR))
    assert await world.run("select after from operation_fanouts") is None
    await fan_out(world)
    assert await world.run("select count(*) from operations where due_at = $1", now + 3 * HOUR) == 150


async def test_an_event_that_nothing_follows_leaves_no_work_and_no_signal(world: World) -> None:
    now = await world.clock.freeze()
    event_id = await an_event(world, now + HOUR)
    (done,) = await following(world, event_id, offset=timedelta(0))
    await world.run(
        "update operations set state = 'missed', code = 'late_window_elapsed', completed_at = lastcall_now()"
    )
    heard: list[Signal] = []
    world.db.bus.subscribe(Signal, heard.append)
    before = await world.row(done)
    await retime(world, event_id, Timed(now + 2 * HOUR))
    await cancel_event(world.db, world.owner, world.club_id, event_id)
    assert (await fanout(world).next_deadline()).deadline is None
    assert heard == []
    assert await world.row(done) == before


async def test_the_owner_is_woken_by_the_change_and_shares_its_turns(world: World) -> None:
    now = await world.clock.freeze()
    event_id = await an_event(world, now + HOUR)
    await following(world, event_id, 30, offset=timedelta(0))
    heard: list[Signal] = []
    world.db.bus.subscribe(Signal, heard.append)
    await retime(world, event_id, Timed(now + 2 * HOUR))
    assert heard == [Signal("operation_fanout", now)]
    assert (await fanout(world).next_deadline()).deadline == now
    # A note that fails is stepped past, and what another event changed is gone through.
    await world.run(
        "insert into operation_fanouts (club_id, id, subject_kind, subject_id, created_at)"
        " values ($1, gen_random_uuid(), 'creation', gen_random_uuid(), $2)",
        world.club_id,
        now - HOUR,
    )
    await world.run("alter table operation_fanouts drop constraint operation_fanouts_subject_kind_check")
    await world.run("update operation_fanouts set subject_kind = 'unknown' where subject_kind = 'creation'")
    result = await fanout(world).run_pass(Stop())
    assert not isinstance(result, (Done, More))
    assert await world.run("select array_agg(subject_kind) from operation_fanouts") == ["unknown"]
