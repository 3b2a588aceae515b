"""Reviewed actions go all the way, at most once, with the real server and a real database."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from vertical import Vertical

from lastcall.connections.accounts import rotate_key
from lastcall.connections.switches import (
    set_account_limits,
    set_connection_limit,
    set_connection_switch,
)
from lastcall.operations.schedules import Fixed
from lastcall.testing.waiting import eventually
from lastcall.vrchat.simulator import faults


async def test_a_batch_a_ban_and_an_invitation_go_all_the_way_once(vertical: Vertical) -> None:
    seed = vertical.simulator.seed
    operations = await vertical.enqueue(*(vertical.role(member) for member in range(5)))
    operations += await vertical.enqueue({"kind": "ban_member", "targetUserId": seed.members[7]})
    operations += await vertical.enqueue({"kind": "invite_member", "targetUserId": seed.strangers[0]})
    assert {await vertical.ended(operation) for operation in operations} == {("succeeded", None)}
    assert len(vertical.simulator.ledger.of()) == 7


async def test_a_fixed_time_is_waited_for_and_met(vertical: Vertical) -> None:
    due_at = vertical.time.clock.wall() + timedelta(hours=2)
    [operation] = await vertical.enqueue(vertical.role(0), schedule=Fixed(due_at))
    await vertical.advance(7100)
    assert (await vertical.row(operation))["state"] == "pending"
    assert vertical.simulator.ledger.of() == []
    await vertical.advance(101)
    assert await vertical.ended(operation) == ("succeeded", None)


@pytest.mark.clause("WRK-14", "RCV-01")
async def test_a_dropped_reply_ends_as_unknown_at_once_and_nothing_is_sent_again(vertical: Vertical) -> None:
    vertical.simulator.arm(faults.drop(applied=True), method="POST", path="/groups/*/bans")
    [operation] = await vertical.enqueue(
        {"kind": "ban_member", "targetUserId": vertical.simulator.seed.members[3]}
    )
    state, code = await vertical.ended(operation)
    assert (state, code) == ("indeterminate", "network")
    assert len(vertical.simulator.ledger.of()) == 1


@pytest.mark.clause("WRK-18")
async def test_a_throttled_read_defers_and_is_tried_after_the_providers_delay(vertical: Vertical) -> None:
    vertical.simulator.arm(faults.answer(429, retry_after="120"), method="GET", path="/groups/*")
    [operation] = await vertical.enqueue(vertical.role(0))

    async def cooling() -> bool:
        return await vertical.database.pool.fetchval("select state from accounts") == "cooldown"

    await eventually(cooling, within=15)
    assert (await vertical.row(operation))["preflight_failures"] == 1
    reads = len(vertical.simulator.arrivals)
    await vertical.advance(110)
    assert (await vertical.row(operation))["state"] == "pending"
    assert len(vertical.simulator.arrivals) == reads, "the whole account is silent"
    await vertical.advance(40)
    assert await vertical.ended(operation) == ("succeeded", None)


async def test_a_missing_grant_rejects_with_its_reason(vertical: Vertical) -> None:
    seed = vertical.simulator.seed
    vertical.simulator.world.groups[seed.group_id].members[seed.bot_id].grants.discard("group-bans-manage")
    [operation] = await vertical.enqueue({"kind": "ban_member", "targetUserId": seed.members[3]})
    assert await vertical.ended(operation) == ("rejected", "provider_permissions")
    assert vertical.simulator.ledger.of() == []


@pytest.mark.clause("BUD-02")
async def test_a_budget_below_the_cost_rejects_before_any_read(vertical: Vertical) -> None:
    await set_connection_limit(vertical.database, vertical.owner, vertical.club_id, vertical.connection_id, 1)
    [operation] = await vertical.enqueue(vertical.role(0))
    assert await vertical.ended(operation) == ("rejected", "operation_budget_too_low")
    assert [each for each in vertical.simulator.arrivals if "/groups/" in each.path] == []


@pytest.mark.clause("BUD-07", "RCV-09")
async def test_two_collectors_of_one_account_write_no_more_than_its_day_has(
    vertical: Vertical, tmp_path: Path
) -> None:
    """What does not fit is missed at once, because the next day is beyond its grace."""
    now = vertical.time.clock.wall()
    await vertical.advance((timedelta(days=1) - timedelta(hours=now.hour - 12)).total_seconds())
    await set_account_limits(vertical.database, None, vertical.key.account_id, writes_per_day=4)
    vertical.start_collector(tmp_path / "another")
    operations = await vertical.enqueue(*(vertical.role(member) for member in range(7)))
    ends = [await vertical.ended(operation) for operation in operations]
    assert ends.count(("succeeded", None)) == 4
    assert ends.count(("missed", "late_window_elapsed")) == 3
    assert len(vertical.simulator.ledger.of()) == 4


async def test_a_switched_off_connection_sends_nothing_until_it_is_on_again(vertical: Vertical) -> None:
    who = (vertical.database, vertical.owner, vertical.club_id, vertical.connection_id)
    await set_connection_switch(*who, is_on=True)
    [operation] = await vertical.enqueue(vertical.role(0))
    await vertical.advance(60)
    assert (await vertical.row(operation))["state"] == "pending"
    await set_connection_switch(*who, is_on=False)
    assert await vertical.ended(operation) == ("succeeded", None)


async def test_two_collectors_of_one_account_share_the_work_and_send_each_action_once(
    vertical: Vertical, tmp_path: Path
) -> None:
    vertical.start_collector(tmp_path / "another")
    operations = []
    for first in range(0, 20, 5):
        operations += await vertical.enqueue(*(vertical.role(first + n) for n in range(5)))
    assert {await vertical.ended(operation) for operation in operations} == {("succeeded", None)}
    assert len(vertical.simulator.ledger.of()) == 20


async def test_a_replaced_key_stops_the_old_collector_and_a_new_one_goes_on(vertical: Vertical) -> None:
    [first] = await vertical.enqueue(vertical.role(0))
    assert await vertical.ended(first) == ("succeeded", None)
    vertical.key = await rotate_key(vertical.database, None, vertical.key.account_id)
    [second] = await vertical.enqueue(vertical.role(1))
    await vertical.stop_collectors()
    assert (await vertical.row(second))["state"] == "pending"
    vertical.start_collector()
    assert await vertical.ended(second) == ("succeeded", None)


@pytest.mark.clause("DEP-05", "BUD-03")
async def test_invitations_wait_for_their_instance_and_follow_it_there(vertical: Vertical) -> None:
    seed = vertical.simulator.seed
    vertical.simulator.arm(faults.hold("opening", "arrived"), method="POST", path="/instances")
    [creation] = await vertical.enqueue(vertical.creation())
    await vertical.simulator.reached("opening")
    people = (*seed.friends[:2], seed.strangers[0])
    *invited, stranger = await vertical.enqueue(*(vertical.invitation(creation, person) for person in people))
    assert {(await vertical.row(one))["ready_at"] for one in (*invited, stranger)} == {None}
    vertical.simulator.release("opening")
    assert await vertical.ended(creation) == ("succeeded", None)
    assert {await vertical.ended(one) for one in invited} == {("succeeded", None)}
    assert await vertical.ended(stranger) == ("rejected", "friendship")
    (opened,) = vertical.simulator.ledger.of("group.instance.create")
    invites = vertical.simulator.ledger.of("instance.invite")
    assert [entry.target for entry in invites] == list(seed.friends[:2])
    assert opened.target in vertical.simulator.world.instances
    assert len(vertical.simulator.ledger.of()) == 3


@pytest.mark.clause("DEP-05")
async def test_an_instance_that_may_not_be_there_is_nowhere_to_invite_to(vertical: Vertical) -> None:
    vertical.simulator.arm(faults.drop(applied=True), method="POST", path="/instances")
    vertical.simulator.arm(faults.hold("grants", "arrived"), method="GET", path="/groups/*")
    [creation] = await vertical.enqueue(vertical.creation())
    await vertical.simulator.reached("grants")
    [invited] = await vertical.enqueue(vertical.invitation(creation, vertical.simulator.seed.friends[0]))
    vertical.simulator.release("grants")
    assert (await vertical.ended(creation))[0] == "indeterminate"
    assert await vertical.ended(invited) == ("rejected", "instance_creation_failed")
    assert len(vertical.simulator.ledger.of()) == 1
