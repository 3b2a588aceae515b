"""From pass to pass: a connection is offered as long as actions of it are due, and only where they may be sent."""

from __future__ import annotations

from datetime import timedelta

import pytest
from operations_world import World, invitation

from lastcall.connections.connect import disconnect_club
from lastcall.connections.leases import release_lease, take_lease
from lastcall.connections.looks import LookWork
from lastcall.connections.states import PASSABLE, USABLE, ConnectionState
from lastcall.connections.work import Due, WorkBoard
from lastcall.errors import Conflict
from lastcall.operations.work import OperationWork
from lastcall.protocol.outcomes import Outcome

SHORT = timedelta(milliseconds=50)


async def a_pass(world: World, *, done: int) -> None:
    """Take the lease, send some of what is due, and give the connection back."""
    world.token = (await take_lease(world.db, world.worker, world.club_id, world.connection_id)).fencing_token
    for _ in range(done):
        claim = world.held(await world.claim())
        await world.steps.authorize(world.worker, claim, "invite_member", world.evidence())
        await world.steps.complete(world.worker, claim, Outcome.SUCCEEDED, None, {})
    await release_lease(world.db, world.worker, world.lease)


@pytest.mark.clause("WRK-16")
async def test_a_connection_is_offered_again_at_once_while_actions_remain_and_then_no_more(
    world: World,
) -> None:
    await release_lease(world.db, world.worker, world.lease)
    board = WorkBoard(world.db, [LookWork(world.db), OperationWork(world.db)])
    due = [Due(world.club_id, world.connection_id)]
    for number in range(5):
        await world.one(invitation(number))
    for done in (2, 2, 1):
        assert await board.wait(world.account_id, world.worker_id, SHORT) == due
        await a_pass(world, done=done)
    assert await board.wait(world.account_id, world.worker_id, SHORT) == []


async def test_what_is_queued_brings_nobody_to_a_connection_where_it_may_not_be_sent(world: World) -> None:
    await world.one(invitation(1))
    for state in ConnectionState:
        await world.run("update connections set state = $1", state.value)
        found = await OperationWork(world.db).ready(world.account_id)
        assert bool(found) == (state in USABLE), state


@pytest.mark.clause("COL-09")
async def test_nothing_is_claimed_where_a_collector_only_comes_in_waits_or_leaves(world: World) -> None:
    await world.one(invitation(1))
    await release_lease(world.db, world.worker, world.lease)
    for state in PASSABLE - USABLE:
        await world.run("update connections set state = $1", state.value)
        given = await take_lease(world.db, world.worker, world.club_id, world.connection_id)
        world.token = given.fencing_token
        with pytest.raises(Conflict, match=r"not active|connected anew"):
            await world.claim()


async def test_a_group_that_is_left_keeps_no_action_due(world: World) -> None:
    await world.one(invitation(1))
    await disconnect_club(world.db, None, world.club_id, world.connection_id)
    board = WorkBoard(world.db, [LookWork(world.db), OperationWork(world.db)])
    assert await board.wait(world.account_id, world.worker_id, SHORT) == [
        Due(world.club_id, world.connection_id)
    ], "the account has to leave"
    assert await OperationWork(world.db).ready(world.account_id) == []
