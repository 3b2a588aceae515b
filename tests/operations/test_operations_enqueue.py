"""Enqueue: what is frozen, who may, and what the same request again is answered."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest
from operations_world import ROLE, World, assignment, ban, invitation, user

from lastcall.deadlines.signals import Signal
from lastcall.errors import Conflict, Invalid, LastcallError, NotAllowed, NotFound
from lastcall.operations.schedules import Fixed, Immediate, late_at
from lastcall.operations.services.enqueue import enqueue
from lastcall.people.actor import Actor
from lastcall.testing.locks import wait_until_blocked


@pytest.mark.clause("ENQ-01")
async def test_an_operation_stores_payload_subject_epoch_schedule_revision_and_outcome(world: World) -> None:
    due_at = await world.clock.now() + timedelta(hours=1)
    operation_id = await world.one(assignment(7), due_at=due_at)
    row = await world.row(operation_id)
    assert json.loads(row["payload"]) == {"targetUserId": user(7), "roleId": ROLE}
    assert row["kind"] == "assign_role"
    assert row["actor_id"] == world.moderator.person_id
    assert row["epoch"] == world.epoch
    assert (row["schedule_kind"], row["due_at"], row["ready_at"]) == ("fixed", due_at, due_at)
    assert (row["revision"], row["state"], row["result"], row["code"]) == (1, "pending", None, None)


@pytest.mark.clause("ENQ-02")
async def test_a_request_freezes_up_to_a_hundred_payloads_or_none(world: World) -> None:
    made = await world.enqueue(*[assignment(n) for n in range(100)])
    rows = await world.db.pool.fetch(
        "select id, target from operations where request_id = $1 order by position", made.request_id
    )
    assert [row["id"] for row in rows] == list(made.operation_ids)
    assert [row["target"] for row in rows] == [f"{user(n)}|{ROLE}" for n in range(100)]

    for payloads in ([assignment(n) for n in range(101)], []):
        with pytest.raises(Invalid, match="1 to 100") as refusal:
            await world.enqueue(*payloads)
        assert refusal.value.field == "payloads"
    with pytest.raises(Invalid) as refusal:
        await world.enqueue(*[assignment(n) for n in range(200, 250)], {**assignment(1), "roleId": "grol_1"})
    assert refusal.value.field == "payloads.50.roleId"
    assert await world.run("select count(*) from operations") == 100


@pytest.mark.clause("ENQ-05", "ENQ-03")
async def test_the_same_request_again_gets_its_ids_and_times_even_past_the_grace(world: World) -> None:
    first = await world.enqueue(assignment(1), assignment(2), key="request-1")
    await world.clock.advance(timedelta(hours=3))
    again = await world.enqueue(
        {"roleId": ROLE, "targetUserId": user(1), "kind": "assign_role"}, assignment(2), key="request-1"
    )
    assert again.is_replay
    assert (again.request_id, again.operation_ids, again.due_at) == (
        first.request_id,
        first.operation_ids,
        first.due_at,
    )
    row = await world.row(first.operation_ids[0])
    assert row["due_at"] == row["ready_at"] == first.due_at
    assert await world.run("select count(*) from operations") == 2


@pytest.mark.clause("ENQ-03")
async def test_a_used_request_id_is_refused_for_any_other_actor_content_or_schedule(world: World) -> None:
    soon = await world.clock.now() + timedelta(hours=1)
    made = await world.enqueue(assignment(1), assignment(2), key="request-1")
    # What was asked counts, not what the rows say now.
    await world.run(
        "update operations set target = 'edited', payload = jsonb_set(payload, '{targetUserId}', '\"x\"')"
        " where id = $1",
        made.operation_ids[0],
    )
    assert (await world.enqueue(assignment(1), assignment(2), key="request-1")).is_replay
    others: list[tuple[list[dict[str, str]], dict[str, Any]]] = [
        ([assignment(1), assignment(2)], {"actor": world.owner}),
        ([assignment(2), assignment(1)], {}),
        ([assignment(1)], {}),
        ([invitation(1), invitation(2)], {}),
        ([assignment(1), assignment(2)], {"due_at": soon}),
    ]
    for payloads, how in others:
        with pytest.raises(Conflict, match=r"Request ID already used\."):
            await world.enqueue(*payloads, key="request-1", **how)
    assert await world.run("select count(*) from operations") == 2


@pytest.mark.clause("ENQ-12")
async def test_who_lost_the_permission_cannot_read_ids_back_by_a_replay(world: World) -> None:
    await world.enqueue(assignment(1), key="request-1")
    await world.run("update staff_roles set permissions = '{view_members}'")
    with pytest.raises(NotAllowed) as refusal:
        await world.enqueue(assignment(1), key="request-1")
    assert refusal.value.code == "permission_missing"
    await world.run("delete from staff_assignments")
    with pytest.raises(NotFound):
        await world.enqueue(assignment(1), key="request-1")


@pytest.mark.clause("ENQ-12")
async def test_permission_is_asked_for_each_payload(world: World) -> None:
    await world.run("update staff_roles set permissions = '{invite_group_members,assign_vrchat_roles}'")
    await world.enqueue(invitation(1))
    with pytest.raises(NotAllowed, match="Ban and unban"):
        await world.enqueue(ban(1))
    with pytest.raises(NotAllowed) as refusal:
        await world.enqueue(assignment(1), assignment(2, role_id=ROLE.replace("1", "2")))
    assert (refusal.value.code, refusal.value.field) == ("role_not_assignable", "payloads.1.roleId")
    stranger = Actor(uuid4(), "Stranger", is_operator=True)
    with pytest.raises(NotFound):
        await world.enqueue(invitation(1), actor=stranger)
    assert await world.run("select count(*) from operations") == 1


@pytest.mark.clause("ENQ-04")
async def test_bulk_is_of_one_kind_and_never_a_ban(world: World) -> None:
    for payloads in ([ban(1), ban(2)], [invitation(1), assignment(2)]):
        with pytest.raises(Invalid) as refusal:
            await world.enqueue(*payloads)
        assert refusal.value.code == "bulk_refused"
    assert await world.run("select count(*) from operations") == 0
    assert await world.run("select count(*) from operation_requests") == 0
    lanes = [
        (await world.row((await world.enqueue(*payloads)).operation_ids[0]))["lane"]
        for payloads in ([ban(1)], [invitation(1)], [invitation(2), invitation(3)])
    ]
    assert lanes == [1, 2, 3]


@pytest.mark.clause("ENQ-13")
async def test_duplicate_targets_are_refused_whatever_their_case(world: World) -> None:
    with pytest.raises(Invalid, match=r"Duplicate recipient\.") as refusal:
        await world.enqueue(assignment(1), assignment(2), assignment(1, f"grol_{ROLE[5:].upper()}"))
    assert refusal.value.field == "payloads.2.targetUserId"
    assert await world.run("select count(*) from operations") == 0


@pytest.mark.parametrize(
    ("payload", "field", "sentence"),
    [
        ({"kind": "assign_role", "targetUserId": "wulf", "roleId": ROLE}, "targetUserId", "a VRChat user id"),
        (
            {"kind": "assign_role", "targetUserId": user(1) + "\n", "roleId": ROLE},
            "targetUserId",
            "a VRChat user id",
        ),
        ({"kind": "assign_role", "targetUserId": user(1)}, "roleId", "missing"),
        ({"kind": "ban_member", "targetUserId": user(1), "reason": "x"}, "reason", "no field"),
        ({"kind": "ban_member", "targetUserId": 7}, "targetUserId", "a VRChat user id"),
        ({"kind": "dance"}, "kind", "no such kind"),
        ({}, "kind", "no such kind"),
    ],
)
async def test_a_malformed_payload_names_its_field(
    world: World, payload: dict[str, Any], field: str, sentence: str
) -> None:
    with pytest.raises(Invalid, match=sentence) as refusal:
        await world.enqueue(payload, actor=world.owner)
    assert refusal.value.field == f"payloads.0.{field}"


@pytest.mark.parametrize("key", ["short", "a" * 101, "with space", "line-end-\n"])
async def test_a_malformed_request_id_is_refused(world: World, key: str) -> None:
    with pytest.raises(Invalid) as refusal:
        await world.enqueue(assignment(), key=key)
    assert refusal.value.field == "requestId"


@pytest.mark.clause("ENQ-06")
async def test_a_fixed_time_keeps_its_meaning_inside_the_window(world: World) -> None:
    now = await world.clock.freeze()
    for late in (timedelta(minutes=-15), timedelta(days=366)):
        row = await world.row(await world.one(invitation(abs(late.days)), due_at=now + late))
        assert (row["due_at"], row["schedule_kind"]) == (now + late, "fixed")
    microsecond = timedelta(microseconds=1)
    for outside, code in (
        (timedelta(minutes=-15) - microsecond, "time_too_early"),
        (timedelta(days=366) + microsecond, "time_too_far"),
    ):
        with pytest.raises(Invalid) as refusal:
            await world.one(invitation(900), due_at=now + outside)
        assert (refusal.value.code, refusal.value.field) == (code, "schedule.dueAt")
    with pytest.raises(Invalid, match="no zone"):
        await world.one(invitation(900), due_at=now.replace(tzinfo=None))
    # A row of an older release has no kind of schedule and is claimed like any other.
    await world.run("update operations set schedule_kind = null")
    assert (await world.claim()).kind == "invite_member"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("update connections set state = 'auth_required'", "connection_inactive"),
        ("update connections set state = 'disconnected'", "connection_inactive"),
        ("update connections set features = '{analytics,posts}'", "feature_disabled"),
    ],
)
async def test_without_a_usable_connection_nothing_is_stored(world: World, change: str, code: str) -> None:
    await world.run(change)
    with pytest.raises(Conflict) as refusal:
        await world.enqueue(assignment())
    assert refusal.value.code == code
    assert await world.run("select count(*) from operation_requests") == 0


async def test_a_degraded_connection_still_takes_work(world: World) -> None:
    await world.run("update connections set state = 'degraded'")
    assert await world.state(await world.one()) == "pending"


async def test_enqueue_says_its_deadline_and_its_work_after_the_commit(world: World) -> None:
    heard: list[Signal] = []
    world.db.bus.subscribe(Signal, heard.append)
    made = await world.enqueue(assignment())
    assert heard == [
        Signal("operation_late_pending", late_at(made.due_at)),
        Signal(f"work:{world.account_id}", made.due_at),
    ]
    await world.enqueue(assignment(), key="request-1")
    heard.clear()
    await world.enqueue(assignment(), key="request-1")
    assert heard == []


@pytest.mark.clause("ENQ-03")
async def test_two_at_once_with_one_request_id_make_one_request(world: World) -> None:
    """The second waits for the first's key, then returns its ids or is refused."""
    blocker = await world.db.connect()
    try:
        for content, is_same in ((assignment(1), True), (assignment(2), False)):
            key = f"request-{is_same}"
            transaction = blocker.transaction()
            await transaction.start()
            await blocker.execute("lock table operations in exclusive mode")
            first = asyncio.ensure_future(world.enqueue(assignment(1), key=key))
            await wait_until_blocked(world.db, "insert into operations")
            second = asyncio.ensure_future(world.enqueue(content, key=key))
            await wait_until_blocked(world.db, "insert into operation_requests")
            await transaction.rollback()
            made = await first
            if is_same:
                assert (await second).operation_ids == made.operation_ids
            else:
                with pytest.raises(LastcallError, match=r"Request ID already used\."):
                    await second
    finally:
        await blocker.close()
    assert await world.run("select count(*) from operation_requests") == 2
    assert await world.run("select count(*) from operations") == 2


async def test_a_disconnect_under_way_is_waited_for_and_seen(world: World) -> None:
    """Otherwise a row of the old epoch could slip in behind the clean-up of that epoch."""
    blocker = await world.db.connect()
    try:
        async with blocker.transaction():
            await blocker.execute("update connection_gates set generation = generation + 1")
            asked = asyncio.ensure_future(
                enqueue(world.db, world.owner, world.club_id, "request-1", [assignment()], Immediate())
            )
            await wait_until_blocked(world.db, "connection_gates", by=blocker.get_server_pid())
            await blocker.execute("update connections set state = 'disconnected'")
        with pytest.raises(Conflict) as refusal:
            await asked
    finally:
        await blocker.close()
    assert refusal.value.code == "connection_inactive"


async def test_a_fixed_schedule_is_compared_by_its_instant(world: World) -> None:
    due_at = await world.clock.now() + timedelta(hours=1)
    await world.one(key="request-1", due_at=due_at)
    elsewhere = due_at.astimezone(ZoneInfo("Asia/Tokyo"))
    again = await enqueue(
        world.db, world.moderator, world.club_id, "request-1", [assignment()], Fixed(elsewhere)
    )
    assert again.is_replay
