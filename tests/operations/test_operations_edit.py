"""Editing a pending operation: at the revision seen, under the editor's authority, and never into new work."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from event_kit import DAY, HOUR, TBA, make_event, move, queue_one, relative, retime
from operations_world import ROLE, World, assignment, ban, invitation, user

from lastcall.connections.signals import work
from lastcall.deadlines.signals import Signal
from lastcall.errors import Conflict, Invalid, LastcallError, NotAllowed, NotFound
from lastcall.events.queries import Publication
from lastcall.events.services.write import cancel_event, reinstate_event, remove_event
from lastcall.operations.machine import State
from lastcall.operations.schedules import Fixed, Immediate, Schedule, late_at
from lastcall.operations.services.edit import edit
from lastcall.operations.views import OperationView
from lastcall.people.actor import Actor
from lastcall.protocol.outcomes import Outcome

OTHER_ROLE = ROLE.replace("1", "2")


async def edited(
    world: World,
    operation_id: UUID,
    payload: dict[str, Any] | None = None,
    schedule: Schedule | None = None,
    *,
    revision: int = 1,
    actor: Actor | None = None,
) -> OperationView:
    return await edit(
        world.db,
        actor or world.moderator,
        world.club_id,
        operation_id,
        revision,
        payload or assignment(7),
        schedule or Immediate(),
    )


async def refused(world: World, operation_id: UUID, *how: Any, **named: Any) -> LastcallError:
    """What edit says, once it is seen that it changed nothing at all and told nobody."""
    heard: list[object] = []
    world.db.bus.subscribe(Signal, heard.append)
    before = await world.row(operation_id)
    with pytest.raises(LastcallError) as refusal:
        await edited(world, operation_id, *how, **named)
    assert await world.row(operation_id) == before
    assert await world.run("select count(*) from operation_revisions") == 0
    assert await world.run("select count(*) from activity_log where action = 'operation.edited'") == 0
    assert heard == []
    return refusal.value


@pytest.mark.clause("EDT-05")
async def test_an_edit_keeps_what_was_and_puts_the_editor_in_charge(world: World) -> None:
    now = await world.clock.now()
    operation_id = await world.one(assignment(1), due_at=now + HOUR)
    await world.run("update operations set preflight_failures = 2, code = 'timeout'")
    view = await edited(world, operation_id, assignment(2), Fixed(now + 2 * HOUR), actor=world.owner)
    assert (view.revision, view.actor_id, view.state) == (2, world.owner.person_id, State.PENDING)
    row = await world.row(operation_id)
    assert json.loads(row["payload"]) == {"targetUserId": user(2), "roleId": ROLE}
    assert (row["target"], row["due_at"]) == (f"{user(2)}|{ROLE}", now + 2 * HOUR)
    assert (row["preflight_failures"], row["code"]) == (0, None)
    kept = await world.db.pool.fetchrow("select * from operation_revisions")
    assert (kept["operation_id"], kept["revision"]) == (operation_id, 1)
    assert (kept["actor_id"], kept["edited_by"]) == (world.moderator.person_id, world.owner.person_id)
    assert json.loads(kept["payload"])["targetUserId"] == user(1)
    assert (json.loads(kept["schedule"]), kept["due_at"]) == ({"kind": "fixed"}, now + HOUR)
    # Its request still knows who asked for what.
    assert await world.run("select created_by from operation_requests") == world.moderator.person_id
    assert await world.run("select count(*) from activity_log where action = 'operation.edited'") == 1


@pytest.mark.clause("ENQ-06")
async def test_a_row_without_a_kind_of_schedule_is_edited_as_the_fixed_one_that_it_is(world: World) -> None:
    now = await world.clock.now()
    operation_id = await world.one(due_at=now + HOUR)
    await world.run("update operations set schedule_kind = null")
    assert (await edited(world, operation_id, schedule=Fixed(now + 2 * HOUR))).schedule_kind == "fixed"
    assert json.loads(await world.run("select schedule from operation_revisions")) == {"kind": "fixed"}


@pytest.mark.clause("EDT-05")
async def test_the_kind_never_changes(world: World) -> None:
    operation_id = await world.one(invitation(1))
    for payload in (ban(1), {"targetUserId": user(1)}):
        error = await refused(world, operation_id, payload, actor=world.owner)
        assert (error.code, error.field) == ("kind_fixed", "payload.kind")


@pytest.mark.clause("EDT-01", "EDT-02")
async def test_a_stale_revision_is_refused_before_anything_changes(world: World) -> None:
    operation_id = await world.one()
    await world.run("update operations set revision = 3")
    for seen in (1, 2, 4):
        error = await refused(world, operation_id, revision=seen)
        assert (error.code, error.sentence) == ("revision_stale", "Refresh to continue.")
        assert isinstance(error, Conflict)
        assert error.fresh.revision == 3


@pytest.mark.clause("EDT-01")
async def test_only_what_is_pending_is_edited(world: World) -> None:
    claimed, held = await world.claimed()
    assert (await refused(world, claimed)).code == "operation_not_editable"
    await world.steps.authorize(world.worker, held, "assign_role", world.evidence())
    assert (await refused(world, claimed)).code == "operation_not_editable"
    await world.steps.complete(world.worker, held, Outcome.SUCCEEDED)
    error = await refused(world, claimed)
    assert isinstance(error, Conflict)
    assert error.fresh.state is State.SUCCEEDED


@pytest.mark.clause("EDT-04")
async def test_an_editor_needs_the_permission_of_the_old_and_the_new(world: World) -> None:
    banned = await world.one(ban(1), actor=world.owner)
    roles = await world.one(assignment(1))
    other = await world.one(assignment(2, OTHER_ROLE), actor=world.owner)
    await world.run("update staff_roles set permissions = '{assign_vrchat_roles,manage_scheduled_actions}'")
    with pytest.raises(NotFound):
        await edited(world, banned, ban(2))
    for operation_id, payload in ((roles, assignment(1, OTHER_ROLE)), (other, assignment(2))):
        error = await refused(world, operation_id, payload)
        assert (error.code, error.field) == ("role_not_assignable", "payload.roleId")
    with pytest.raises(NotFound):
        await edited(world, roles, actor=Actor(uuid4(), "Stranger", is_operator=True))


@pytest.mark.clause("EDT-04")
async def test_another_persons_action_needs_the_scheduling_permission_or_ownership(world: World) -> None:
    operation_id = await world.one(actor=world.owner)
    error = await refused(world, operation_id)
    assert isinstance(error, NotAllowed)
    await world.run("update staff_roles set permissions = permissions || '{manage_scheduled_actions}'")
    assert (await edited(world, operation_id)).actor_id == world.moderator.person_id
    # From then on it is the editor's authority that counts.
    await world.run("delete from staff_assignments")
    claimed = await world.claim()
    verdict = await world.steps.authorize(world.worker, world.held(claimed), "assign_role", world.evidence())
    assert verdict.code == "staff_permission"
    mine = await world.one(assignment(3), actor=world.owner)
    assert (await edited(world, mine, actor=world.owner)).revision == 2


@pytest.mark.clause("EDT-06", "EDT-05")
async def test_editing_to_now_takes_a_new_time_of_the_server(world: World) -> None:
    now = await world.clock.freeze()
    operation_id = await world.one(due_at=now + DAY)
    await world.clock.advance(HOUR)
    heard: list[Signal] = []
    world.db.bus.subscribe(Signal, heard.append)
    view = await edited(world, operation_id)
    assert (view.due_at, view.ready_at, view.schedule_kind) == (now + HOUR, now + HOUR, "immediate")
    assert await world.run("select due_at from operation_revisions") == now + DAY
    assert heard == [
        Signal("operation_late_pending", late_at(now + HOUR)),
        work(world.account_id, now + HOUR),
    ]
    await world.renew()
    assert (await world.claim()).operation_id == operation_id


@pytest.mark.clause("WRK-18")
async def test_an_edit_does_not_shorten_the_providers_backoff(world: World) -> None:
    now = await world.clock.freeze()
    operation_id = await world.one()
    until = now + timedelta(minutes=9)
    await world.run("update operations set ready_at = $1, retry_at = $1, preflight_failures = 1", until)
    view = await edited(world, operation_id)
    assert (view.due_at, view.ready_at) == (now, until)
    assert (await edited(world, operation_id, schedule=Fixed(now + HOUR), revision=2)).ready_at == now + HOUR


@pytest.mark.clause("EDT-10", "ENQ-09")
async def test_an_event_relative_edit_names_the_time_that_is_true(world: World) -> None:
    event = await make_event(world)
    operation_id = await world.one(due_at=await world.clock.now() + HOUR)
    moved = await move(world, event, HOUR)
    assert (await refused(world, operation_id, schedule=relative(event))).code == "event_moved"
    view = await edited(world, operation_id, schedule=relative(moved))
    assert moved.starts_at is not None
    assert (view.event_id, view.offset, view.due_at) == (event.id, -HOUR, moved.starts_at - HOUR)
    again = await edited(world, operation_id, revision=2)
    assert (again.event_id, again.offset) == (None, None)
    kept = await world.run("select schedule from operation_revisions where revision = 2")
    assert json.loads(kept) == {"kind": "event_relative", "event_id": str(event.id), "offset_ms": -3_600_000}


@pytest.mark.clause("ENQ-07")
async def test_an_edit_may_name_only_an_event_that_enqueue_may_name(world: World) -> None:
    draft = await make_event(world, publication=Publication.DRAFT)
    cancelled = await make_event(world)
    await cancel_event(world.db, world.owner, world.club_id, cancelled.id)
    operation_id = await world.one()
    for event_id, code in (
        (draft.id, "event_unknown"),
        (uuid4(), "event_unknown"),
        (cancelled.id, "event_cancelled"),
    ):
        assert (await refused(world, operation_id, schedule=Immediate(event_id))).code == code
    view = await edited(world, operation_id, schedule=Immediate(draft.id), actor=world.owner)
    assert view.event_id == draft.id


@pytest.mark.clause("EVT-05", "EVT-04", "EVT-06")
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("cancelled and reinstated", "event_cancelled"),
        ("removed", "event_deleted"),
        ("time lost", "event_time_tba"),
    ],
)
async def test_no_edit_revives_what_its_event_has_stopped(world: World, change: str, code: str) -> None:
    """The fan-out may not have come by yet: the row still says that it is pending."""
    event = await make_event(world)
    operation_id = await queue_one(world, relative(event))
    await world.run("create table kept as select * from operations")
    if change == "removed":
        await remove_event(world.db, world.owner, world.club_id, event.id)
    elif change == "time lost":
        await retime(world, event, TBA)
        await retime(world, event, event.time)
    else:
        await cancel_event(world.db, world.owner, world.club_id, event.id)
        await reinstate_event(world.db, world.owner, world.club_id, event.id)
    await world.run("delete from operations")
    await world.run("insert into operations select * from kept")
    assert await world.state(operation_id) == "pending"
    assert (await refused(world, operation_id)).code == code


@pytest.mark.clause("EDT-11")
async def test_a_recipient_of_a_batch_stays_different_from_all_others_of_it(world: World) -> None:
    made = await world.enqueue(assignment(1), assignment(2), assignment(3))
    done = world.held(await world.claim())
    await world.steps.authorize(world.worker, done, "assign_role", world.evidence())
    await world.steps.complete(world.worker, done, Outcome.SUCCEEDED)
    single = await world.one(assignment(4))
    over = next(n for n, one in enumerate(made.operation_ids, 1) if one == done.operation_id)
    pending = [one for one in made.operation_ids if one != done.operation_id]
    others = [n for n in (1, 2, 3) if n != over]
    upper = assignment(over, f"grol_{ROLE[5:].upper()}")
    for payload in (assignment(others[1]), assignment(over), upper):
        error = await refused(world, pending[0], payload)
        assert (error.code, error.sentence, error.field) == (
            "duplicate_recipient",
            "Duplicate recipient.",
            "payload.targetUserId",
        )
    # Its own recipient, and one of another request, stand in nobody's way.
    assert (await edited(world, pending[0], assignment(others[0]))).revision == 2
    assert (await edited(world, pending[0], assignment(4), revision=2)).revision == 3
    assert (await edited(world, single, assignment(1))).revision == 2


@pytest.mark.clause("EDT-12")
async def test_an_action_of_an_old_epoch_cannot_be_edited_into_new_work(world: World) -> None:
    operation_id = await world.one()
    await world.run("update connections set epoch = epoch + interval '1 second'")
    assert (await refused(world, operation_id)).code == "connection_changed"
    await world.run("update connections set epoch = $1, state = 'disconnected'", world.epoch)
    assert (await refused(world, operation_id)).code == "connection_changed"
    await world.run("update connections set state = 'auth_required'")
    assert (await edited(world, operation_id)).revision == 2


@pytest.mark.clause("ENQ-03")
async def test_a_retry_of_an_edited_batch_still_gets_its_ids(world: World) -> None:
    made = await world.enqueue(assignment(1), assignment(2), key="request-1")
    await edited(world, made.operation_ids[0], assignment(9), actor=world.moderator)
    again = await world.enqueue(assignment(1), assignment(2), key="request-1")
    assert (again.is_replay, again.operation_ids, again.due_at) == (True, made.operation_ids, made.due_at)
    with pytest.raises(Conflict):
        await world.enqueue(assignment(9), assignment(2), key="request-1")


async def test_an_edited_payload_is_read_as_strictly_as_a_new_one(world: World) -> None:
    operation_id = await world.one()
    for payload, field in (
        ({**assignment(1), "roleId": "grol_1"}, "payload.roleId"),
        ({**assignment(1), "more": 1}, "payload.more"),
    ):
        error = await refused(world, operation_id, payload)
        assert isinstance(error, Invalid)
        assert error.field == field
