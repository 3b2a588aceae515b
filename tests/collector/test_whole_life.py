"""A connection from the first look to the last, with the real server, its collector and a simulated group."""

from __future__ import annotations

from datetime import timedelta

import pytest
from vertical import MANY, Vertical

from lastcall.connections.connect import connect_club, disconnect_club
from lastcall.connections.looks import check_now, rejoin
from lastcall.connections.states import Feature
from lastcall.connections.switches import set_connection_limit
from lastcall.testing.waiting import eventually
from lastcall.vrchat.simulator.edits import edit

WINDOW = 40.0
"""Seconds in which the allowance opens at least once."""


def change(vertical: Vertical, name: str, **arguments: str) -> None:
    """Something that somebody else does to the group."""
    simulator = vertical.simulator
    edit(simulator.clock, simulator.world, simulator.seed.group_id, name, **arguments)


def is_member(vertical: Vertical) -> bool:
    simulator = vertical.simulator
    return simulator.seed.bot_id in simulator.world.groups[simulator.seed.group_id].members


async def until(vertical: Vertical, state: str) -> None:
    """Until the connection has come to that state."""

    async def look() -> bool:
        found = await vertical.database.pool.fetchval(
            "select state from connections where id = $1", vertical.connection_id
        )
        return bool(found == state)

    await eventually(look, within=WINDOW, message=f"The connection does not come to {state}.")


async def connect_anew(vertical: Vertical, join_state: str) -> None:
    """The account is out of the group, whose door is like that, and the club is connected to it again."""
    await disconnect_club(vertical.database, vertical.owner, vertical.club_id, vertical.connection_id)
    await until(vertical, "disconnected")
    assert not is_member(vertical), "it left"
    change(vertical, "set_join_state", join_state=join_state)
    vertical.connection_id = await connect_club(
        vertical.database,
        vertical.owner,
        vertical.club_id,
        group_id=vertical.simulator.seed.group_id,
        features=[Feature.MEMBERSHIP_MANAGEMENT],
    )
    await set_connection_limit(
        vertical.database, vertical.owner, vertical.club_id, vertical.connection_id, MANY
    )


async def succeeds(vertical: Vertical) -> None:
    """An action goes through."""
    for grant in ("group-roles-assign", "group-members-manage"):
        change(vertical, "give_grant", user_id=vertical.simulator.seed.bot_id, grant=grant)
    [operation] = await vertical.enqueue(vertical.role(3))
    assert await vertical.ended(operation, WINDOW) == ("succeeded", None)


@pytest.mark.clause("COL-01", "COL-09")
async def test_an_account_leaves_joins_an_open_group_again_and_works_there(vertical: Vertical) -> None:
    await connect_anew(vertical, "open")
    await until(vertical, "active")
    assert is_member(vertical)
    written = [entry.action for entry in vertical.simulator.ledger.of()]
    assert written == ["group.member.leave", "group.member.join"]
    await succeeds(vertical)
    name = await vertical.database.pool.fetchval(
        "select group_name from connections where id = $1", vertical.connection_id
    )
    group = vertical.simulator.world.groups[vertical.simulator.seed.group_id]
    assert name == group.name, "the name is what VRChat says"


async def test_where_people_decide_the_account_asks_and_waits_and_works_once_it_is_let_in(
    vertical: Vertical,
) -> None:
    await connect_anew(vertical, "request")
    await until(vertical, "awaiting_approval")
    change(vertical, "add_member", user_id=vertical.simulator.seed.bot_id)
    await vertical.advance(5 * 60)
    await until(vertical, "active")
    assert is_member(vertical)
    await succeeds(vertical)


async def test_an_invitation_is_followed_and_nothing_else_opens_a_closed_group(vertical: Vertical) -> None:
    await connect_anew(vertical, "invite")
    await until(vertical, "awaiting_invite")
    assert not is_member(vertical)
    change(vertical, "invite", user_id=vertical.simulator.seed.bot_id)
    await check_now(vertical.database, vertical.owner, vertical.club_id, vertical.connection_id)
    await until(vertical, "active")
    assert is_member(vertical)


@pytest.mark.clause("COL-08")
async def test_who_was_removed_stays_out_of_an_open_group_until_a_person_lets_it_join_again(
    vertical: Vertical,
) -> None:
    await connect_anew(vertical, "open")
    await until(vertical, "active")
    change(vertical, "remove_member", user_id=vertical.simulator.seed.bot_id)
    [operation] = await vertical.enqueue(vertical.role(4))
    assert await vertical.ended(operation, WINDOW) == ("rejected", "membership")
    await until(vertical, "awaiting_invite")
    looks = len(vertical.simulator.arrivals)
    await vertical.advance(timedelta(minutes=6).total_seconds())
    await eventually(lambda: len(vertical.simulator.arrivals) > looks, within=WINDOW)
    assert not is_member(vertical)
    await rejoin(vertical.database, vertical.owner, vertical.club_id, vertical.connection_id)
    await until(vertical, "active")
    assert is_member(vertical)


async def test_a_banned_account_is_blocked_and_looks_no_more(vertical: Vertical) -> None:
    change(vertical, "ban", user_id=vertical.simulator.seed.bot_id)
    await check_now(vertical.database, vertical.owner, vertical.club_id, vertical.connection_id)
    await until(vertical, "blocked")

    async def is_over() -> bool:
        row = await vertical.database.pool.fetchrow(
            "select next_look_at, last_fault from connections where id = $1", vertical.connection_id
        )
        return tuple(row) == (None, "banned")

    await eventually(is_over, within=WINDOW)
