"""Enqueue with an event: whose it may be, what it must know of its time, and what happens when it moves."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from event_kit import A_DATE, DAY, HOUR, TBA, make_event, move, queue, queue_one, relative
from operations_world import World, assignment, ban, invitation, user

from lastcall.clubs.policy import standing
from lastcall.errors import Conflict, Invalid, LastcallError
from lastcall.events.queries import Publication, timed_picker
from lastcall.events.services.write import cancel_event, publish_event, reinstate_event, remove_event
from lastcall.events.times import EventTime
from lastcall.operations.kinds import KINDS
from lastcall.operations.schedules import EventRelative, Fixed, Immediate, Schedule
from lastcall.operations.services.edit import edit
from lastcall.operations.services.enqueue import enqueue

MILLISECOND = timedelta(milliseconds=1)


async def refused(world: World, schedule: Schedule, **how: object) -> LastcallError:
    """What enqueue says to this schedule, once nothing is stored."""
    before = await world.run("select count(*) from operation_requests")
    with pytest.raises(LastcallError) as refusal:
        await queue(world, schedule, **how)  # type: ignore[arg-type]
    assert await world.run("select count(*) from operation_requests") == before
    return refusal.value


@pytest.mark.clause("ENQ-06")
async def test_an_event_relative_time_is_its_start_and_the_offset_and_keeps_both(world: World) -> None:
    event = await make_event(world)
    assert event.starts_at is not None
    for n, offset in enumerate((-HOUR, timedelta(0), 3 * HOUR + MILLISECOND)):
        row = await world.row(await queue_one(world, relative(event, offset), assignment(n)))
        assert row["due_at"] == row["ready_at"] == event.starts_at + offset
        assert (row["schedule_kind"], row["offset_ms"]) == ("event_relative", offset // MILLISECOND)
        assert (row["event_id"], row["event_cancel_generation"], row["event_tba_generation"]) == (
            event.id,
            0,
            0,
        )


@pytest.mark.clause("ENQ-06")
async def test_times_have_bounds(world: World) -> None:
    now = await world.clock.freeze()
    event = await make_event(world, 300 * DAY)
    assert event.starts_at is not None
    year = timedelta(days=365)
    assert await queue_one(world, relative(event, timedelta(days=66)))
    for offset, code in (
        (timedelta(days=66) + MILLISECOND, "time_too_far"),
        (year + MILLISECOND, "offset_too_far"),
        (-year - MILLISECOND, "offset_too_far"),
        (timedelta(microseconds=500), "offset_too_fine"),
        (-300 * DAY, "time_too_early"),
    ):
        error = await refused(world, relative(event, offset))
        assert (error.code, error.field) == (code, "schedule.offsetMs")
    naive = (event.starts_at - HOUR).replace(tzinfo=None)
    error = await refused(world, relative(event, reviewed=naive))
    assert (error.code, error.field) == ("time_without_zone", "schedule.reviewedDueAt")
    # One microsecond from now is in the future still.
    soon = await make_event(world, HOUR + timedelta(microseconds=1))
    row = await world.row(await queue_one(world, relative(soon, -HOUR), assignment(2)))
    assert row["due_at"] == now + timedelta(microseconds=1)


@pytest.mark.clause("ENQ-07")
@pytest.mark.parametrize("kind", ["immediate", "fixed", "event_relative"])
async def test_any_schedule_may_name_an_event_of_the_club_that_takes_place(world: World, kind: str) -> None:
    event = await make_event(world)
    later = await world.clock.now() + HOUR
    schedules: dict[str, Schedule] = {
        "immediate": Immediate(event.id),
        "fixed": Fixed(later, event.id),
        "event_relative": relative(event),
    }
    schedule = schedules[kind]
    row = await world.row(await queue_one(world, schedule))
    assert (row["event_id"], row["schedule_kind"]) == (event.id, kind)

    await cancel_event(world.db, world.owner, world.club_id, event.id)
    assert (await refused(world, schedule)).code == "event_cancelled"
    await reinstate_event(world.db, world.owner, world.club_id, event.id)
    row = await world.row(await queue_one(world, schedule))
    assert row["event_cancel_generation"] == 1
    await remove_event(world.db, world.owner, world.club_id, event.id)
    error = await refused(world, schedule)
    assert (error.code, error.field) == ("event_unknown", "schedule.eventId")


@pytest.mark.clause("ENQ-07")
async def test_an_event_of_another_club_is_as_unknown_as_none(world: World) -> None:
    event = await make_event(world)
    other = uuid4()
    await world.run(
        "insert into clubs (id, slug, name, zone, owner_id) values ($1, 'other', 'Other', 'UTC', $2)",
        other,
        world.owner.person_id,
    )
    await world.run("update events set club_id = $1", other)
    for event_id in (event.id, uuid4()):
        assert (await refused(world, Immediate(event_id))).code == "event_unknown"


@pytest.mark.clause("ENQ-07")
async def test_a_draft_is_for_those_who_manage_events(world: World) -> None:
    event = await make_event(world, publication=Publication.DRAFT)
    error = await refused(world, Immediate(event.id))
    assert (error.code, error.field) == ("event_unknown", "schedule.eventId")
    assert await queue_one(world, Immediate(event.id), actor=world.owner)
    await world.run("update staff_roles set permissions = permissions || '{manage_events}'")
    assert await queue_one(world, Immediate(event.id))
    await world.run("update staff_roles set permissions = array_remove(permissions, 'manage_events')")
    await publish_event(world.db, world.owner, world.club_id, event.id)
    assert await queue_one(world, Immediate(event.id))


@pytest.mark.clause("ENQ-08")
@pytest.mark.parametrize("when", [TBA, A_DATE], ids=["time to be announced", "date only"])
async def test_without_an_exact_start_nothing_is_timed_by_an_event(world: World, when: EventTime) -> None:
    event = await make_event(world, when)
    now = await world.clock.now()
    error = await refused(world, EventRelative(event.id, HOUR, now + HOUR))
    assert error.code == "event_time_tba"
    assert await queue_one(world, Fixed(now + HOUR, event.id))
    timed = await make_event(world)
    async with world.db.read() as tx:
        reader = await standing(tx, world.club_id, world.owner.person_id)
        picked, _ = await timed_picker(tx, reader, world.club_id)
    assert [one.id for one in picked] == [timed.id]


@pytest.mark.clause("ENQ-09")
async def test_the_reviewed_time_must_be_true_still_but_a_retry_gets_its_ids_first(world: World) -> None:
    event = await make_event(world)
    first = await queue(world, relative(event), key="request-1")
    moved = await move(world, event, HOUR)
    stale = relative(event)
    assert (await refused(world, stale)).code == "event_moved"
    again = await queue(world, stale, key="request-1")
    assert again.is_replay
    assert again.operation_ids == first.operation_ids
    # Whatever time a retry was shown, what it asks for is the same.
    assert (await queue(world, relative(moved), key="request-1")).operation_ids == first.operation_ids
    with pytest.raises(Conflict, match="already used"):
        await queue(world, relative(moved, -2 * HOUR), key="request-1")
    row = await world.row(await queue_one(world, relative(moved), assignment(2)))
    assert moved.starts_at is not None
    assert row["due_at"] == moved.starts_at - HOUR


@pytest.mark.clause("ENQ-09")
async def test_a_time_that_passed_since_the_review_is_refused(world: World) -> None:
    await world.clock.freeze()
    event = await make_event(world, 2 * HOUR)
    await world.clock.advance(HOUR)
    error = await refused(world, relative(event, -HOUR))
    assert (error.code, error.sentence) == ("time_too_early", "That time has passed.")
    assert await queue_one(world, relative(event, -HOUR + MILLISECOND))


@pytest.mark.clause("ENQ-03")
async def test_the_event_is_part_of_what_was_asked(world: World) -> None:
    event, other = await make_event(world), await make_event(world)
    await queue(world, Immediate(event.id), key="request-1")
    assert (await queue(world, Immediate(event.id), key="request-1")).is_replay
    for schedule in (Immediate(), Immediate(other.id)):
        with pytest.raises(Conflict, match="already used"):
            await queue(world, schedule, key="request-1")


@pytest.mark.clause("ENQ-12", "ENQ-03")
async def test_a_replay_comes_before_whatever_may_have_changed_since(world: World) -> None:
    """Connection, feature, event and the kind's rules are of no account to a request that was stored."""
    event = await make_event(world)
    first = await queue(world, relative(event), assignment(1), assignment(2), key="request-1")
    await remove_event(world.db, world.owner, world.club_id, event.id)
    await world.run("update connections set state = 'auth_required', features = '{}'")
    again = await queue(world, relative(event), assignment(1), assignment(2), key="request-1")
    assert again.operation_ids == first.operation_ids
    assert (await refused(world, Immediate())).code == "connection_inactive"


async def evidence_of_bans(world: World, *user_ids: str) -> None:
    await world.run(
        """
        insert into evidence (club_id, connection_id, kind, subject, epoch, body, observed_at, account_id, worker_id)
        select $1, $2, 'bans', 'page-1', $3, jsonb_build_object('bannedUserIds', $4::text[]), lastcall_now(), $5, $6
        """,
        world.club_id,
        world.connection_id,
        world.epoch,
        list(user_ids),
        world.account_id,
        world.worker_id,
    )


async def test_an_invitation_of_somebody_whom_fresh_evidence_names_as_banned_must_be_chosen(
    world: World,
) -> None:
    """VRChat lifts a ban when the person is invited."""
    await world.clock.freeze()
    await evidence_of_bans(world, user(2).upper().replace("USR_", "usr_"), user(3))
    payloads = [invitation(n) for n in (1, 2, 3)]
    with pytest.raises(Invalid) as refusal:
        await world.enqueue(*payloads)
    assert (refusal.value.code, refusal.value.field) == ("target_banned", "payloads.1.targetUserId")
    assert [field for field, _ in refusal.value.others] == ["payloads.2.targetUserId"]
    ask = (world.db, world.moderator, world.club_id, "request-1", payloads, Immediate())
    with pytest.raises(Invalid):
        await enqueue(*ask, confirm_banned={user(2)})
    assert await world.run("select count(*) from operations") == 0
    made = await enqueue(*ask, confirm_banned={user(2), user(3)})
    assert (await enqueue(*ask)).operation_ids == made.operation_ids
    # Other kinds lift no ban, and a read of a minute ago is no evidence.
    assert await world.one(assignment(2))
    await world.clock.advance(timedelta(seconds=61))
    assert await world.one(invitation(2))


async def test_an_edit_to_somebody_who_is_banned_must_be_chosen_too(world: World) -> None:
    operation_id = await world.one(invitation(1))
    await evidence_of_bans(world, user(2))
    ask = (world.db, world.moderator, world.club_id, operation_id, 1, invitation(2), Immediate())
    with pytest.raises(Invalid) as refusal:
        await edit(*ask)
    assert (refusal.value.code, refusal.value.field) == ("target_banned", "payload.targetUserId")
    assert (await edit(*ask, confirm_banned={user(2)})).revision == 2


async def test_bans_of_an_earlier_epoch_or_from_the_future_are_no_evidence(world: World) -> None:
    await world.clock.freeze()
    await evidence_of_bans(world, user(1))
    for change in (
        "epoch = epoch - interval '1 second'",
        "epoch = $1, observed_at = lastcall_now() + interval '1 s'",
    ):
        await world.run(f"update evidence set {change}", *([world.epoch] if "$1" in change else []))
        assert await world.one(invitation(1))


async def test_enqueue_takes_as_many_statements_for_a_hundred_as_for_one(world: World) -> None:
    event = await make_event(world)
    await queue(world, relative(event), invitation(900))
    counts = []
    for count in (1, 100):
        before = world.db.statements
        await queue(world, relative(event), *[invitation(n) for n in range(count)])
        counts.append(world.db.statements - before)
    assert counts[0] == counts[1] <= 16


@pytest.mark.clause("ENQ-04")
async def test_only_kinds_that_are_reviewed_in_lists_go_several_at_once(world: World) -> None:
    bulk = {name for name, kind in KINDS.items() if kind.is_bulk}
    assert bulk <= {
        "approve_request",
        "reject_request",
        "invite_member",
        "assign_role",
        "remove_role",
        "invite_to_instance",
        "invite_to_created_instance",
    }
    with pytest.raises(Invalid) as refusal:
        await world.enqueue(ban(1), ban(2))
    assert refusal.value.code == "bulk_refused"
