"""What staff see of operations, and cancelling one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from operations_world import World, assignment, ban, invitation

from lastcall.clubs.policy import Standing, standing
from lastcall.db.cursor import Cursor
from lastcall.errors import Conflict, NotAllowed, NotFound
from lastcall.operations.machine import State
from lastcall.operations.queries import Filter, history, operation, request_rollups, upcoming
from lastcall.operations.services.cancel import cancel
from lastcall.operations.views import OperationView
from lastcall.people.actor import Actor
from lastcall.protocol.outcomes import Outcome

HOUR = timedelta(hours=1)


async def _standing(world: World, actor: Actor) -> Standing:
    async with world.db.transaction() as tx:
        return await standing(tx, world.club_id, actor.person_id)


async def _upcoming(
    world: World, actor: Actor, *, after: Cursor | None = None, limit: int = 50, **only: Any
) -> list[OperationView]:
    stands = await _standing(world, actor)
    async with world.db.read() as tx:
        return await upcoming(tx, stands, actor, world.club_id, Filter(**only), after=after, limit=limit)


async def _history(
    world: World, actor: Actor, *, after: Cursor | None = None, limit: int = 50, **only: Any
) -> list[OperationView]:
    stands = await _standing(world, actor)
    async with world.db.read() as tx:
        return await history(tx, stands, actor, world.club_id, Filter(**only), after=after, limit=limit)


async def test_upcoming_is_an_agenda_by_due_time_paged_by_key(world: World) -> None:
    now = await world.clock.now()
    same = (await world.enqueue(*[assignment(n) for n in range(5)], due_at=now + HOUR)).operation_ids
    first = await world.one(ban(1), due_at=now)
    last = await world.one(invitation(1), due_at=now + 2 * HOUR)
    seen: list[OperationView] = []
    cursor = None
    while page := await _upcoming(world, world.moderator, after=cursor, limit=2):
        seen += page
        cursor = Cursor(page[-1].due_at, page[-1].id)
    assert [row.id for row in seen] == [first, *sorted(same), last]
    assert seen[1].request_size == 5
    assert seen[1].actor_name == "Moderator"
    assert seen[0].kind.words.label == "Ban from group"


async def test_history_is_filtered_on_the_server_newest_end_first(world: World) -> None:
    ends = []
    for n, outcome in enumerate(
        (Outcome.SUCCEEDED, Outcome.REJECTED, Outcome.INDETERMINATE, Outcome.SUCCEEDED)
    ):
        operation_id, held = await world.submitted(assignment(n))
        await world.steps.complete(world.worker, held, outcome, "timeout")
        ends.append(operation_id)
    await world.one(assignment(9))
    assert [row.id for row in await _history(world, world.moderator)] == ends[::-1]
    failed = await _history(world, world.moderator, states={State.REJECTED, State.INDETERMINATE})
    assert [row.id for row in failed] == [ends[2], ends[1]]
    assert failed[0].reason is not None
    assert failed[0].reason.label == "VRChat did not answer in time"
    top = await _history(world, world.moderator, limit=1)
    assert top[0].completed_at is not None
    rest = await _history(world, world.moderator, after=Cursor(top[0].completed_at, top[0].id))
    assert [row.id for row in rest] == ends[2::-1]
    assert await _history(world, world.moderator, kinds={"ban_member"}) == []


async def test_kinds_without_the_permission_do_not_exist_for_the_reader(world: World) -> None:
    banned = await world.one(ban(1))
    invited = await world.one(invitation(2))
    await world.run("update staff_roles set permissions = '{invite_group_members}'")
    assert [row.id for row in await _upcoming(world, world.moderator)] == [invited]
    assert [row.id for row in await _upcoming(world, world.moderator, kinds={"ban_member"})] == []
    stands = await _standing(world, world.moderator)
    async with world.db.read() as tx:
        with pytest.raises(NotFound):
            await operation(tx, stands, world.moderator, world.club_id, banned)
        with pytest.raises(NotFound):
            await operation(tx, stands, world.moderator, uuid4(), invited)
        assert (await operation(tx, stands, world.moderator, world.club_id, invited)).id == invited
        ids = {row["request_id"] for row in await tx.raw.fetch("select request_id from operations")}
        assert len(await request_rollups(tx, stands, world.club_id, ids)) == 1
    with pytest.raises(NotFound):
        await cancel(world.db, world.moderator, world.club_id, banned, 1)
    assert len(await _upcoming(world, world.owner)) == 2


async def test_a_request_shows_how_far_it_is(world: World) -> None:
    made = await world.enqueue(*[assignment(n) for n in range(3)])
    held = world.held(await world.claim())
    await world.steps.authorize(world.worker, held, "assign_role", world.evidence())
    await world.steps.complete(world.worker, held, Outcome.SUCCEEDED)
    await world.claim()
    stands = await _standing(world, world.moderator)
    async with world.db.read() as tx:
        rollup = (await request_rollups(tx, stands, world.club_id, [made.request_id]))[made.request_id]
    assert rollup.counts == {State.PENDING: 1, State.CLAIMED: 1, State.SUCCEEDED: 1}
    assert (rollup.size, rollup.settled, rollup.created_by_name) == (3, 1, "Moderator")


@pytest.mark.clause("EDT-07")
@pytest.mark.parametrize("state", ["pending", "claimed"])
async def test_cancel_stops_what_is_unsent_and_a_second_cancel_changes_nothing(
    world: World, state: str
) -> None:
    operation_id = await world.one() if state == "pending" else (await world.claimed())[0]
    for _ in range(2):
        row = await cancel(world.db, world.moderator, world.club_id, operation_id, 1)
        assert (row.state, row.code, row.is_cancellable) == (State.CANCELLED, "cancelled_by_staff", False)
    assert await world.run("select count(*) from activity_log where action = 'operation.cancelled'") == 1
    assert await world.steps.claim(world.worker, world.lease, world.journal_id) is None


@pytest.mark.clause("EDT-07")
async def test_cancel_at_another_revision_or_after_the_submission_is_a_conflict_with_the_fresh_row(
    world: World,
) -> None:
    operation_id = await world.one()
    await world.run("update operations set revision = 2")
    with pytest.raises(Conflict, match=r"Refresh to continue\.") as stale:
        await cancel(world.db, world.moderator, world.club_id, operation_id, 1)
    assert stale.value.fresh.revision == 2
    assert await world.state(operation_id) == "pending"

    submitted, _ = await world.submitted_by(world.worker, ban(2))
    with pytest.raises(Conflict) as late:
        await cancel(world.db, world.moderator, world.club_id, submitted, 1)
    assert late.value.fresh.state is State.SUBMITTED
    assert await world.state(submitted) == "submitted"


@pytest.mark.clause("EDT-13")
async def test_another_persons_action_needs_the_scheduling_permission_or_ownership(world: World) -> None:
    operation_id = await world.one(actor=world.owner)
    assert not (await _upcoming(world, world.moderator))[0].is_cancellable
    with pytest.raises(NotAllowed):
        await cancel(world.db, world.moderator, world.club_id, operation_id, 1)
    with pytest.raises(NotFound):
        await cancel(world.db, world.moderator, uuid4(), operation_id, 1)
    await world.run("update staff_roles set permissions = permissions || '{manage_scheduled_actions}'")
    assert (await _upcoming(world, world.moderator))[0].is_cancellable
    assert (await cancel(world.db, world.moderator, world.club_id, operation_id, 1)).state is State.CANCELLED
    mine = await world.one(invitation(1), actor=world.moderator)
    assert (await cancel(world.db, world.owner, world.club_id, mine, 1)).state is State.CANCELLED
