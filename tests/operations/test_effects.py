"""An approval queues what it carries under the authority of whoever approves it, once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from notices_kit import another_moderator
from operations_world import World, assignment, ban, invitation

from lastcall.db.ids import encode_id, new_id
from lastcall.decisions.effects import effect_named
from lastcall.errors import Conflict, Invalid, LastcallError, NotAllowed, NotFound
from lastcall.operations.listeners import register
from lastcall.operations.services import asked
from lastcall.people.actor import Actor
from lastcall.testing.locks import wait_until_blocked

NOW = {"kind": "immediate"}


@pytest.fixture(autouse=True)
def registered() -> None:
    register()


def body(*payloads: dict[str, str], schedule: Mapping[str, Any] = NOW, **more: Any) -> dict[str, Any]:
    return {"payloads": list(payloads or (invitation(),)), "schedule": dict(schedule), **more}


async def approve(
    world: World, approval_id: UUID, carried: Mapping[str, Any], approver: Actor, **reviewed: Any
) -> dict[str, Any]:
    """What an approval's service does with its effect."""
    effect = effect_named("operations")
    async with world.db.transaction() as tx:
        await effect.lock(tx, world.club_id, carried)
        return await effect.apply(world.db, approver, world.club_id, approval_id, carried, reviewed)


async def an_event(world: World, starts_at: datetime) -> UUID:
    event_id = new_id()
    await world.db.pool.execute(
        """
        insert into events
               (club_id, id, title, schedule_kind, starts_at, zone, sort_at, over_at, publication, created_by)
        values ($1, $2, 'Evening', 'timed', $3, 'UTC', $3, $3, 'published', $4)
        """,
        world.club_id,
        event_id,
        starts_at,
        world.owner.person_id,
    )
    return event_id


def relative(event_id: UUID, minutes: int) -> dict[str, Any]:
    return {"kind": "event_relative", "event_id": encode_id(event_id), "offset_ms": minutes * 60_000}


async def test_it_is_queued_as_the_approver_and_named_by_the_approval(world: World) -> None:
    approval_id = new_id()
    answer = await approve(world, approval_id, body(invitation(1), invitation(2)), world.moderator)
    rows = await world.db.pool.fetch(
        "select o.id, o.actor_id, q.request_key, q.created_by from operations o"
        " join operation_requests q on q.id = o.request_id order by o.position"
    )
    assert [encode_id(row["id"]) for row in rows] == answer["operationIds"]
    assert (
        {row["actor_id"] for row in rows}
        == {row["created_by"] for row in rows}
        == {world.moderator.person_id}
    )
    assert {row["request_key"] for row in rows} == {f"approval_{encode_id(approval_id)}"}


async def test_approving_again_queues_nothing_new(world: World) -> None:
    approval_id = new_id()
    first = await approve(world, approval_id, body(), world.moderator)
    assert await approve(world, approval_id, body(), world.moderator) == first
    assert await world.run("select count(*) from operations") == 1


async def taken_before(world: World, approval_id: UUID) -> None:
    """Somebody queues something of their own under the request id that the approval will have."""
    await world.enqueue(invitation(9), actor=world.owner, key=f"approval_{encode_id(approval_id)}")


async def test_the_request_ids_of_approvals_are_nobody_elses(world: World) -> None:
    approval_id = new_id()
    with pytest.raises(Invalid) as refusal:
        await taken_before(world, approval_id)
    assert (refusal.value.code, refusal.value.field) == ("request_id_reserved", "requestId")
    await approve(world, approval_id, body(), world.moderator)
    assert await world.run("select count(*) from operation_requests") == 1


async def test_twin_a_request_id_that_somebody_took_first_makes_the_approval_impossible(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    approval_id = new_id()
    with monkeypatch.context() as unreserved:
        unreserved.setattr(asked, "APPROVAL_KEY", "nothing begins with this")
        await taken_before(world, approval_id)
    with pytest.raises(Conflict) as refusal:
        await approve(world, approval_id, body(), world.moderator)
    assert refusal.value.code == "request_id_used"


async def test_the_approvers_authority_is_judged_when_they_approve(world: World) -> None:
    carried = body(assignment(1))
    effect_named("operations").validate(carried)
    approver = await another_moderator(world)
    await world.run("update staff_roles set permitted_provider_role_ids = '{}'")
    with pytest.raises(NotAllowed) as refusal:
        await approve(world, new_id(), carried, approver)
    assert refusal.value.code == "role_not_assignable"
    await world.run("update staff_roles set permissions = '{}'")
    with pytest.raises(NotAllowed):
        await approve(world, new_id(), carried, approver)
    await world.run("delete from staff_assignments")
    with pytest.raises(NotFound):
        await approve(world, new_id(), carried, approver)
    assert await world.run("select count(*) from operation_requests") == 0


@pytest.mark.parametrize(
    ("carried", "code"),
    [
        (body(ban(1), ban(2)), "bulk_refused"),
        (body(invitation(1), ban(2)), "bulk_refused"),
        (body(invitation(1), invitation(1)), "duplicate_recipient"),
        (body({"kind": "invite_member"}), "field_missing"),
        (body({"kind": "dance"}), "kind_unknown"),
        ({"payloads": [], "schedule": NOW}, "payload_count"),
        (body(schedule={"kind": "fixed", "due_at": "2030-01-01T00:00:00"}), "time_without_zone"),
        (body(schedule={"kind": "fixed", "due_at": "0001-01-01T00:00:00+14:00"}), "time_unknown"),
        (body(schedule={"kind": "fixed", "due_at": "9999-12-31T23:59:59-14:00"}), "time_unknown"),
        (body(schedule={"kind": "later"}), "schedule_invalid"),
        (
            body(schedule=relative(UUID(int=1), 10**30), reviewedDueAt="2030-01-01T00:00:00Z"),
            "schedule_invalid",
        ),
        (body(schedule=relative(UUID(int=1), 10**9), reviewedDueAt="2030-01-01T00:00:00Z"), "offset_too_far"),
        (body(schedule=relative(UUID(int=1), 5)), "review_missing"),
        (body(mood="good"), "effect_invalid"),
    ],
)
def test_what_no_enqueue_would_take_cannot_be_put_to_anybody(carried: dict[str, Any], code: str) -> None:
    with pytest.raises(Invalid) as refusal:
        effect_named("operations").validate(carried)
    assert refusal.value.code == code


def test_an_effect_that_nobody_offers_is_refused() -> None:
    with pytest.raises(Invalid) as refusal:
        effect_named("fireworks")
    assert refusal.value.code == "effect_unknown"
    assert "operations" in refusal.value.advice


async def test_an_event_that_moved_refuses_until_the_new_time_is_reviewed(world: World) -> None:
    starts_at = datetime(2030, 5, 1, 20, tzinfo=UTC)
    await world.clock.set(starts_at - timedelta(days=1))
    event_id = await an_event(world, starts_at)
    seen = starts_at - timedelta(minutes=30)
    carried = body(schedule=relative(event_id, -30), reviewedDueAt=seen.isoformat())
    effect_named("operations").validate(carried)
    await world.run("update events set starts_at = starts_at + interval '1 hour'")
    approval_id = new_id()
    with pytest.raises(Conflict) as refusal:
        await approve(world, approval_id, carried, world.moderator)
    assert refusal.value.code == "event_moved"
    assert await world.run("select count(*) from operations") == 0
    moved = seen + timedelta(hours=1)
    answer = await approve(world, approval_id, carried, world.moderator, reviewedDueAt=moved.isoformat())
    assert answer["dueAt"] == moved.isoformat()


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_an_effect_locks_in_the_order_of_the_house(world: World, place: int) -> None:
    """Club gate, connection gate, event: whoever waits for one holds those before it and none behind."""
    await world.clock.set(datetime(2030, 4, 30, tzinfo=UTC))
    event_id = await an_event(world, datetime(2030, 5, 1, tzinfo=UTC))
    carried = body(schedule={"kind": "immediate", "event_id": encode_id(event_id)})
    tables = ["club_gates", "connection_gates", "events"]

    async def lock() -> None:
        async with world.db.transaction() as tx:
            await effect_named("operations").lock(tx, world.club_id, carried)

    async with world.db.pool.acquire() as other:
        transaction = other.transaction()
        await transaction.start()
        await other.execute(f"select from {tables[place]} for update")
        waiting = asyncio.create_task(lock())
        await wait_until_blocked(world.db, "select", by=other.get_server_pid())
        free = [
            await world.run(f"select count(*) from (select from {table} for update skip locked) as f")
            for table in tables
        ]
        await transaction.rollback()
    assert free == [0] * (place + 1) + [1] * (2 - place)
    await waiting


async def test_a_refused_effect_undoes_what_came_with_it(world: World) -> None:
    await world.run("update connections set features = '{}'")
    with pytest.raises(LastcallError):
        async with world.db.transaction() as tx:
            await tx.raw.execute("update clubs set name = 'Approved'")
            await effect_named("operations").apply(
                world.db, world.moderator, world.club_id, new_id(), body(), {}
            )
    assert await world.run("select name from clubs") == "Club"
