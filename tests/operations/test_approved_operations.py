"""An agent asks for operations and staff approve them: queued under the approver's authority, or not at all."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from operations_world import World, invitation
from test_effects import an_event, body, relative

from lastcall.db.ids import decode_id
from lastcall.decisions.approvals.asking import Ask, Carried, ask_approval
from lastcall.decisions.approvals.deciding import approve
from lastcall.decisions.registration import register as register_decisions
from lastcall.errors import Conflict, LastcallError, NotAllowed
from lastcall.operations import listeners
from lastcall.operations.services import basis
from lastcall.testing.agents import let_in_agent
from lastcall.testing.locks import wait_until_blocked

STARTS = datetime(2030, 5, 1, 20, tzinfo=UTC)
SEEN = STARTS - timedelta(minutes=30)


@pytest.fixture(autouse=True)
async def ready(world: World) -> None:
    register_decisions()
    listeners.register()
    await world.run("update staff_roles set permissions = permissions || '{decide_approvals}'")


async def asked(world: World, carried: dict[str, Any]) -> UUID:
    """What an agent asks for."""
    agent, _ = await let_in_agent(world.db, world.club_id, world.owner.person_id)
    ask = Ask("announce", "Invite them", effect=Carried("operations", carried))
    return await ask_approval(world.db, agent, world.club_id, ask)


async def yes(world: World, approval_id: UUID, **reviewed: str) -> Any:
    return await approve(
        world.db, world.moderator, world.club_id, approval_id, seen_revision=1, reviewed=reviewed
    )


async def status(world: World, approval_id: UUID) -> str:
    return str(await world.run("select status from approvals where id = $1", approval_id))


async def following_an_event(world: World) -> UUID:
    """An approval of invitations half an hour before an evening."""
    await world.clock.set(STARTS - timedelta(days=1))
    event_id = await an_event(world, STARTS)
    return await asked(world, body(schedule=relative(event_id, -30), reviewedDueAt=SEEN.isoformat()))


async def test_what_an_agent_asked_for_is_queued_as_whoever_approves_it(world: World) -> None:
    approval_id = await asked(world, body(invitation(1), invitation(2)))
    result = await yes(world, approval_id)
    ids = [decode_id(one) for one in result["operationIds"]]
    rows = [await world.row(one) for one in ids]
    assert {(row["actor_id"], row["state"]) for row in rows} == {(world.moderator.person_id, "pending")}
    assert await yes(world, approval_id) == result
    assert await world.run("select count(*) from operations") == 2


async def test_what_the_approver_may_not_do_themselves_stays_asked(world: World) -> None:
    approval_id = await asked(world, body())
    await world.run("update staff_roles set permissions = '{decide_approvals}'")
    with pytest.raises(NotAllowed):
        await yes(world, approval_id)
    assert (await status(world, approval_id), await world.run("select count(*) from operations")) == (
        "pending",
        0,
    )


async def while_the_event_moves(world: World, approval_id: UUID, *, waits: bool) -> Any:
    """What approving ends with, begun while the event's new start is not yet committed."""
    async with world.db.transaction() as tx:
        await tx.raw.execute("update events set starts_at = starts_at + interval '1 hour'")
        approving = asyncio.create_task(yes(world, approval_id))
        if waits:
            await wait_until_blocked(world.db, "from events", by=tx.raw.get_server_pid())
        else:
            await approving
    return (await asyncio.gather(approving, return_exceptions=True))[0]


async def test_an_event_that_moves_meanwhile_refuses_and_the_new_time_can_be_approved(world: World) -> None:
    approval_id = await following_an_event(world)
    refusal = await while_the_event_moves(world, approval_id, waits=True)
    assert isinstance(refusal, Conflict)
    assert refusal.code == "event_moved"
    assert await status(world, approval_id) == "pending"
    assert await world.run("select count(*) from operation_requests") == 0
    moved = SEEN + timedelta(hours=1)
    result = await yes(world, approval_id, reviewedDueAt=moved.isoformat())
    assert (result["dueAt"], await status(world, approval_id)) == (moved.isoformat(), "approved")


async def test_twin_without_the_events_lock_a_time_is_approved_that_is_none_any_more(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    approval_id = await following_an_event(world)
    monkeypatch.setattr(basis, "_HOLD_EVENTS", "select $1::uuid, $2::uuid[]")
    result = await while_the_event_moves(world, approval_id, waits=False)
    assert not isinstance(result, LastcallError)
    assert (result["dueAt"], await status(world, approval_id)) == (SEEN.isoformat(), "approved")
    assert await world.run("select starts_at from events") == STARTS + timedelta(hours=1)
