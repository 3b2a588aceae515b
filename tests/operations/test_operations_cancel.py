"""Cancelling what is left of a request: all or nothing, by one look at who asks."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest
from operations_world import World, assignment, invitation

from lastcall.db.ids import new_id
from lastcall.errors import NotAllowed, NotFound
from lastcall.operations.services.cancel import BatchCancelled, cancel_request
from lastcall.people.actor import Actor
from lastcall.protocol.outcomes import Outcome


async def cancelled(world: World, request_id: UUID, actor: Actor | None = None) -> BatchCancelled:
    return await cancel_request(world.db, actor or world.moderator, world.club_id, request_id)


async def states(world: World, request_id: UUID) -> list[str]:
    rows = await world.db.pool.fetch(
        "select state from operations where request_id = $1 order by position", request_id
    )
    return [row["state"] for row in rows]


@pytest.mark.clause("EDT-08")
async def test_a_batch_is_cancelled_but_for_what_was_sent(world: World) -> None:
    made = await world.enqueue(*[assignment(n) for n in range(5)])
    other = await world.enqueue(invitation(1), invitation(2))
    for end in (True, False):
        held = world.held(await world.claim())
        await world.steps.authorize(world.worker, held, "assign_role", world.evidence())
        if end:
            await world.steps.complete(world.worker, held, Outcome.SUCCEEDED)
    await world.claim()
    before = sorted(await states(world, made.request_id))
    assert before == ["claimed", "pending", "pending", "submitted", "succeeded"]
    assert await cancelled(world, made.request_id) == BatchCancelled(made.request_id, cancelled=3, left=1)
    assert sorted(await states(world, made.request_id)) == ["cancelled"] * 3 + ["submitted", "succeeded"]
    assert set(await states(world, other.request_id)) == {"pending"}
    codes = await world.db.pool.fetch("select distinct code from operations where state = 'cancelled'")
    assert [row["code"] for row in codes] == ["cancelled_by_staff"]
    # Again changes nothing and says nothing.
    assert await cancelled(world, made.request_id) == BatchCancelled(made.request_id, cancelled=0, left=1)
    entries = await world.db.pool.fetch(
        "select entity_id from activity_log where action = 'operations.cancelled'"
    )
    assert [row["entity_id"] for row in entries] == [made.request_id]


@pytest.mark.clause("EDT-13", "EDT-08")
async def test_one_action_of_somebody_else_keeps_the_whole_batch(world: World) -> None:
    made = await world.enqueue(*[assignment(n) for n in range(3)])
    await world.run(
        "update operations set actor_id = $1 where id = $2", world.owner.person_id, made.operation_ids[2]
    )
    with pytest.raises(NotAllowed):
        await cancelled(world, made.request_id)
    assert await states(world, made.request_id) == ["pending"] * 3
    await world.run("update staff_roles set permissions = permissions || '{manage_scheduled_actions}'")
    assert (await cancelled(world, made.request_id)).cancelled == 3
    mine = await world.enqueue(invitation(1), invitation(2))
    assert (await cancelled(world, mine.request_id, world.owner)).cancelled == 2


@pytest.mark.clause("EDT-13")
async def test_a_request_is_cancelled_in_its_club_and_with_its_permission(world: World) -> None:
    made = await world.enqueue(assignment(1), assignment(2))
    other = uuid4()
    await world.run(
        "insert into clubs (id, slug, name, zone, owner_id) values ($1, 'other', 'Other', 'UTC', $2)",
        other,
        world.owner.person_id,
    )
    await world.run("insert into club_gates (club_id) values ($1)", other)
    for club_id, request_id in ((other, made.request_id), (world.club_id, uuid4())):
        with pytest.raises(NotFound) as refusal:
            await cancel_request(world.db, world.owner, club_id, request_id)
        assert refusal.value.code == "request_unknown"
    await world.run("update staff_roles set permissions = '{invite_group_members,manage_scheduled_actions}'")
    with pytest.raises(NotFound) as refusal:
        await cancelled(world, made.request_id)
    assert refusal.value.code == "request_unknown"
    assert await states(world, made.request_id) == ["pending"] * 2


async def statements_of(world: World, request_id: UUID) -> int:
    before = world.db.statements
    await cancelled(world, request_id)
    return world.db.statements - before


@pytest.mark.clause("EDT-08")
async def test_a_hundred_with_a_hundred_roles_take_the_statements_of_one(world: World) -> None:
    one, many = (
        await world.enqueue(assignment(0)),
        await world.enqueue(*[assignment(n) for n in range(1, 101)]),
    )
    await statements_of(world, (await world.enqueue(assignment(200))).request_id)
    single = await statements_of(world, one.request_id)
    for n in range(100):
        role_id = new_id()
        await world.run(
            "insert into staff_roles (club_id, id, name, permissions, permitted_provider_role_ids)"
            " values ($1, $2, $3, '{assign_vrchat_roles}', '{}')",
            *(world.club_id, role_id, f"Role {n}"),
        )
        await world.run(
            "insert into staff_assignments (club_id, id, role_id, person_id) values ($1, $2, $3, $4)",
            *(world.club_id, new_id(), role_id, world.moderator.person_id),
        )
    assert await statements_of(world, many.request_id) == single <= 9
    assert set(await states(world, many.request_id)) == {"cancelled"}


async def test_what_is_cancelled_is_not_claimed_and_a_claim_is_no_more(world: World) -> None:
    made = await world.enqueue(*[assignment(n) for n in range(2)])
    held: Any = world.held(await world.claim())
    await cancelled(world, made.request_id)
    verdict = await world.steps.authorize(world.worker, held, "assign_role", world.evidence())
    assert verdict.code == "claim_unavailable"
    assert await world.steps.claim(world.worker, world.lease, world.journal_id) is None
