"""A connection's whole life with the real server: in, at work, looked at, thrown out, and out again."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable

import pytest
from vertical import MANY, Vertical

from lastcall.connections.connect import connect_club, disconnect_club
from lastcall.connections.looks import check_now
from lastcall.connections.states import Feature
from lastcall.connections.switches import set_connection_limit
from lastcall.reads.asking import request_read
from lastcall.testing.waiting import eventually
from lastcall.vrchat.simulator import faults
from lastcall.vrchat.simulator.edits import edit


def change(vertical: Vertical, name: str, **arguments: str) -> None:
    simulator = vertical.simulator
    edit(simulator.clock, simulator.world, simulator.seed.group_id, name, **arguments)


async def state_is(vertical: Vertical, state: str) -> bool:
    found = await vertical.database.pool.fetchval(
        "select state from connections where id = $1", vertical.connection_id
    )
    return bool(found == state)


async def until_state(vertical: Vertical, state: str) -> None:
    await eventually(lambda: state_is(vertical, state), within=20)


async def passing(vertical: Vertical, is_there: Callable[[], Awaitable[bool]], minutes: int = 15) -> None:
    """Let time pass, minute by minute, until it is there."""
    for _ in range(minutes):
        with contextlib.suppress(AssertionError):
            await eventually(is_there, within=1)
            return
        await vertical.advance(60)
    await eventually(is_there, within=10)


async def until_told(vertical: Vertical, state: str) -> None:
    await passing(vertical, lambda: state_is(vertical, state))


async def connect_again(vertical: Vertical, *features: Feature) -> None:
    await disconnect_club(vertical.database, vertical.owner, vertical.club_id, vertical.connection_id)
    await until_state(vertical, "disconnected")
    vertical.connection_id = await connect_club(
        vertical.database,
        vertical.owner,
        vertical.club_id,
        group_id=vertical.simulator.seed.group_id,
        account_id=vertical.key.account_id,
        features=features or [Feature.MEMBERSHIP_MANAGEMENT],
    )
    await set_connection_limit(
        vertical.database, vertical.owner, vertical.club_id, vertical.connection_id, MANY
    )


def actions(vertical: Vertical) -> list[str]:
    return [entry.action for entry in vertical.simulator.ledger.of()]


@pytest.mark.clause("COL-01", "COL-09")
async def test_an_account_leaves_its_group_and_comes_in_again_and_works(vertical: Vertical) -> None:
    change(vertical, "set_join_state", join_state="open")
    await connect_again(vertical)
    await until_state(vertical, "active")
    assert actions(vertical) == ["group.member.leave", "group.member.join"]
    name = await vertical.database.pool.fetchval(
        "select group_name from connections where id = $1", vertical.connection_id
    )
    assert name == "Demo Club"
    change(vertical, "give_grant", user_id=vertical.simulator.seed.bot_id, grant="group-members-manage")
    change(vertical, "give_grant", user_id=vertical.simulator.seed.bot_id, grant="group-roles-assign")
    [operation] = await vertical.enqueue(vertical.role(0))
    assert await vertical.ended(operation) == ("succeeded", None)


async def test_an_account_that_asked_waits_until_it_is_let_in(vertical: Vertical) -> None:
    await connect_again(vertical)
    await until_state(vertical, "awaiting_approval")
    change(vertical, "add_member", user_id=vertical.simulator.seed.bot_id)
    assert actions(vertical)[-1] == "group.request.create"
    await until_told(vertical, "active")


async def test_a_read_is_answered_by_the_collector_that_it_wakes(vertical: Vertical) -> None:
    asked = await request_read(
        vertical.database, vertical.owner, vertical.club_id, "members", {"n": 5, "offset": 0}
    )

    async def state() -> str | None:
        found = await vertical.database.pool.fetchval(
            "select state from provider_reads where id = $1 and state not in ('pending', 'running')", asked.id
        )
        return None if found is None else str(found)

    assert await eventually(state, within=20) == "succeeded"


async def test_aggregates_and_audit_log_arrive_and_one_of_them_failing_costs_the_actions_nothing(
    vertical: Vertical,
) -> None:
    seed = vertical.simulator.seed
    await connect_again(vertical, Feature.ANALYTICS, Feature.MEMBERSHIP_MANAGEMENT)
    await until_state(vertical, "awaiting_approval")
    change(vertical, "add_member", user_id=seed.bot_id)
    change(vertical, "give_grant", user_id=seed.bot_id, grant="group-audit-view")
    await until_told(vertical, "active")

    async def samples() -> int:
        return int(await vertical.database.pool.fetchval("select count(*) from telemetry_samples"))

    async def has_sample() -> bool:
        return await samples() > 0

    async def has_page() -> bool:
        return any("/auditLogs" in one.path for one in vertical.simulator.arrivals)

    async def has_failed() -> bool:
        return bool(
            await vertical.database.pool.fetchval(
                "select telemetry_failures from connections where id = $1", vertical.connection_id
            )
        )

    await passing(vertical, has_sample)
    await passing(vertical, has_page)
    vertical.simulator.arm(faults.answer(403), method="GET", path="/groups/*/instances")
    await passing(vertical, has_failed)
    before = await samples()
    await until_state(vertical, "active")

    async def goes_on() -> bool:
        return await samples() > before and not await has_failed()

    await passing(vertical, goes_on, minutes=2)
    assert await state_is(vertical, "active")


async def test_a_removed_account_waits_for_people_and_does_not_come_back_by_itself(
    vertical: Vertical,
) -> None:
    change(vertical, "set_join_state", join_state="open")
    change(vertical, "remove_member", user_id=vertical.simulator.seed.bot_id)
    await check_now(vertical.database, vertical.owner, vertical.club_id, vertical.connection_id)
    await until_state(vertical, "awaiting_invite")

    async def is_looked_at_again() -> bool:
        return sum("/groups/" in one.path for one in vertical.simulator.arrivals) > 1

    await passing(vertical, is_looked_at_again)
    await until_state(vertical, "awaiting_invite")
    assert actions(vertical) == []


async def test_an_idle_connection_without_analytics_asks_nothing_for_an_hour(vertical: Vertical) -> None:
    [operation] = await vertical.enqueue(vertical.role(0))
    assert await vertical.ended(operation) == ("succeeded", None)
    await eventually(lambda: is_given_back(vertical), within=10)
    before = sum("/groups/" in one.path for one in vertical.simulator.arrivals)
    for _ in range(5):
        proofs = sum(one.path == "/auth/user" for one in vertical.simulator.arrivals)
        await vertical.advance(725)

        def is_asked(seen: int = proofs) -> bool:
            return sum(one.path == "/auth/user" for one in vertical.simulator.arrivals) > seen

        await eventually(is_asked, within=10)
    assert sum("/groups/" in one.path for one in vertical.simulator.arrivals) == before


async def is_given_back(vertical: Vertical) -> bool:
    held = await vertical.database.pool.fetchval("select count(*) from leases where released_at is null")
    return bool(held == 0)
