"""Agents against whoever takes something from them meanwhile, and one claim against another."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.access.conftest import Door
from tests.access.test_agents import ASK, Robot, ask, let_in

from lastcall.access.agents import claims, keys, policy, service
from lastcall.access.agents.claims import claim_key
from lastcall.access.agents.policy import require_agent
from lastcall.clubs.activity import log
from lastcall.clubs.life import pause_club
from lastcall.db.database import Database
from lastcall.db.transaction import Transaction
from lastcall.errors import Conflict, LastcallError
from lastcall.people.agent_grants import AgentGrant
from lastcall.testing.agents import let_in_agent
from lastcall.testing.locks import wait_until_blocked


@pytest.fixture
async def robot(db: Database, door: Door) -> Robot:
    return Robot(door, *await let_in_agent(db, door.club_id, door.owner.person_id, ASK))


async def _claims(db: Database, door: Door) -> list[Any]:
    """Two claims at once; the first is held open until the second waits for it."""
    asked = await ask(door)
    await let_in(door, asked)
    claim = (db, door.club_id, asked.request_id, asked.claim_secret)
    async with db.transaction() as tx:
        await claim_key(*claim)
        second = asyncio.create_task(claim_key(*claim))
        await wait_until_blocked(db, "join_requests", by=tx.raw.get_server_pid())
    return list(await asyncio.gather(second, return_exceptions=True))


async def _keys(db: Database, door: Door) -> int:
    many: int = await db.pool.fetchval("select count(*) from agent_keys where club_id = $1", door.club_id)
    return many


@pytest.mark.clause("ACC-11")
async def test_of_two_claims_at_once_one_gets_the_key(db: Database, door: Door) -> None:
    (second,) = await _claims(db, door)
    assert isinstance(second, Conflict)
    assert second.code == "key_claimed"
    assert await _keys(db, door) == 1


async def test_twin_without_the_requests_lock_both_claims_get_one(
    db: Database, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_lock(*_: Any) -> None:
        return

    monkeypatch.setattr(claims, "_lock", no_lock)
    (second,) = await _claims(db, door)
    assert not isinstance(second, BaseException)
    assert await _keys(db, door) == 2


async def _act(robot: Robot) -> None:
    """Something that an agent does: judged, then written."""
    async with robot.door.db.transaction() as tx:
        await require_agent(tx, robot.actor, AgentGrant.ASK)
        await log(tx, robot.door.club_id, robot.actor, "join.activity", "agent", robot.actor.agent_id)


async def _acts(robot: Robot) -> int:
    many: int = await robot.door.db.pool.fetchval(
        "select count(*) from activity_log where club_id = $1 and actor_kind = 'agent' and actor_id = $2",
        robot.door.club_id,
        robot.actor.agent_id,
    )
    return many


async def _act_during(robot: Robot, take: Callable[[], Awaitable[Any]]) -> LastcallError | None:
    """What becomes of an act that began, by what was known then, while something is being taken from the agent."""
    async with robot.door.db.transaction() as tx:
        await take()
        acting = asyncio.create_task(_act(robot))
        await wait_until_blocked(robot.door.db, "club_gates", by=tx.raw.get_server_pid())
    (outcome,) = await asyncio.gather(acting, return_exceptions=True)
    assert outcome is None or isinstance(outcome, LastcallError), outcome
    return outcome


def _takes(robot: Robot, code: str) -> Callable[[], Awaitable[Any]]:
    door = robot.door
    return {
        "revoked": lambda: robot.does(service.revoke_keys),
        "blocked": lambda: robot.does(service.block_agent),
        "paused": lambda: robot.does(service.pause_agent),
        "club paused": lambda: pause_club(door.db, door.owner, door.club_id),
    }[code]


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("revoked", "agent_key_refused"),
        ("blocked", "agent_key_refused"),
        ("paused", "agent_paused"),
        ("club paused", "club_paused"),
    ],
)
async def test_what_is_taken_from_an_agent_stops_an_act_that_waits_on_the_gate(
    robot: Robot, what: str, code: str
) -> None:
    refused = await _act_during(robot, _takes(robot, what))
    assert refused is not None
    assert refused.code == code
    assert await _acts(robot) == 0


async def test_an_act_that_was_let_in_holds_off_a_block_until_it_ended(db: Database, robot: Robot) -> None:
    async with db.transaction() as tx:
        await require_agent(tx, robot.actor, AgentGrant.ASK)
        blocking = asyncio.create_task(robot.does(service.block_agent))
        await wait_until_blocked(db, "club_gates", by=tx.raw.get_server_pid())
        await log(tx, robot.door.club_id, robot.actor, "join.activity", "agent", robot.actor.agent_id)
    await blocking
    assert await _acts(robot) == 1
    assert (await robot.view()).status == "blocked"


async def test_twin_without_the_gate_a_blocked_agent_acts_after_all(
    db: Database, robot: Robot, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_gate(tx: Transaction, club_id: Any) -> None:
        return

    monkeypatch.setattr(policy, "hold_gate", no_gate)
    async with db.transaction():
        await robot.does(service.block_agent)
        await asyncio.create_task(_act(robot))
    assert await _acts(robot) == 1


async def test_a_call_of_an_agent_that_is_being_blocked_ends_with_no_deadlock(
    db: Database, robot: Robot
) -> None:
    """The call notes that its key was used, without a gate, while the block holds one part and wants the other."""
    agent = robot.actor
    await db.pool.execute("update agent_keys set last_used_at = null where id = $1", agent.key_id)
    async with db.transaction() as tx:
        await tx.raw.execute("select from agents where id = $1 for update", agent.agent_id)
        blocking = asyncio.create_task(robot.does(service.block_agent))
        await wait_until_blocked(db, "update agents", by=tx.raw.get_server_pid())
        calling = asyncio.create_task(
            db.pool.execute(keys._USED, agent.club_id, agent.key_id, keys.USED_EVERY)
        )
        await wait_until_blocked(db, "with used as")
    outcomes = await asyncio.gather(blocking, calling, return_exceptions=True)
    assert [one for one in outcomes if isinstance(one, BaseException)] == []
    assert not await robot.is_known()
