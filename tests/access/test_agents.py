"""Agents: claiming the first key, the keys that follow it, pausing, blocking, and what each does to the agent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from tests.access.conftest import Door

from lastcall.access.acceptance import accept_invite_as_agent
from lastcall.access.agents import service
from lastcall.access.agents.claims import claim_key
from lastcall.access.agents.keys import actor_of_key
from lastcall.access.agents.policy import require_agent
from lastcall.access.agents.queries import AgentView, agent_in, keys_of, own_view
from lastcall.access.agents.service import AgentFields
from lastcall.access.deciding import approve_join_request, reject_join_request
from lastcall.access.invites import InviteKind, create_invite
from lastcall.access.requests import AgentSubject
from lastcall.clubs.activity import System
from lastcall.clubs.gates import bump_gate
from lastcall.clubs.life import archive_club, pause_club
from lastcall.clubs.permissions import Permission
from lastcall.clubs.staff import assign_role
from lastcall.db.database import Database
from lastcall.deadlines.signals import Signal
from lastcall.errors import Conflict, LastcallError, NotAllowed, NotFound, NotSignedIn
from lastcall.people.actor import Actor, AgentActor
from lastcall.people.agent_grants import AgentGrant
from lastcall.testing.agents import let_in_agent
from lastcall.testing.staff import change_role

ASK = frozenset({AgentGrant.ASK})
BUDGET = System("budget")


@dataclass(frozen=True)
class Asked:
    """An agent's request, and the secret that it was answered with."""

    request_id: UUID
    claim_secret: str


async def ask(door: Door, name: str = "Robot") -> Asked:
    invite = await create_invite(
        door.db, door.owner, door.club_id, [], kind=InviteKind.AGENT, agent_grants=list(AgentGrant)
    )
    made = await accept_invite_as_agent(door.db, invite.token, AgentSubject(name, "Counts."))
    assert made.claim_secret is not None
    return Asked(made.request_id, made.claim_secret)


async def let_in(door: Door, asked: Asked) -> UUID:
    await approve_join_request(door.db, door.owner, door.club_id, asked.request_id, agent_grants=ASK)
    agent_id: UUID = await door.db.pool.fetchval(
        "select agent_id from join_requests where id = $1", asked.request_id
    )
    return agent_id


async def code_of(work: Any) -> str:
    with pytest.raises(LastcallError) as refused:
        await work
    return refused.value.code


@dataclass
class Robot:
    """An agent of the door's club, with its key."""

    door: Door
    actor: AgentActor
    key: str

    async def may(self, grant: AgentGrant | None = None) -> bool:
        async with self.door.db.transaction() as tx:
            await require_agent(tx, self.actor, grant)
        return True

    async def refused(self, grant: AgentGrant | None = None) -> str:
        return await code_of(self.may(grant))

    async def is_known(self) -> bool:
        return await actor_of_key(self.door.db, self.key) is not None

    async def does(self, command: Any, **more: Any) -> Any:
        return await command(self.door.db, self.door.owner, self.door.club_id, self.actor.agent_id, **more)

    async def view(self) -> AgentView:
        async with self.door.db.read() as tx:
            return await agent_in(tx, self.door.club_id, self.actor.agent_id)


@pytest.fixture
async def robot(db: Database, door: Door) -> Robot:
    return Robot(door, *await let_in_agent(db, door.club_id, door.owner.person_id, ASK))


@pytest.mark.clause("ACC-11")
async def test_a_claim_needs_an_approved_request_and_makes_no_retention_work(
    db: Database, door: Door
) -> None:
    asked = await ask(door)
    claim = (db, door.club_id, asked.request_id, asked.claim_secret)
    assert await code_of(claim_key(*claim)) == "request_pending"
    agent_id = await let_in(door, asked)
    heard: list[Signal] = []
    db.bus.subscribe(Signal, heard.append)
    facts = "select status, activity_at, archive_due_at, decided_at from join_requests where id = $1"
    before = await db.pool.fetchrow(facts, asked.request_id)
    retained = await db.pool.fetchval("select count(*) from retention where club_id = $1", door.club_id)

    made = await claim_key(*claim)

    assert heard == []
    assert await db.pool.fetchrow(facts, asked.request_id) == before
    assert retained == await db.pool.fetchval(
        "select count(*) from retention where club_id = $1", door.club_id
    )
    actor = await actor_of_key(db, made.key)
    assert actor is not None
    assert (actor.agent_id, actor.grants, made.generation) == (agent_id, ASK, 1)
    assert await code_of(claim_key(*claim)) == "key_claimed"


async def test_a_rejected_request_gives_no_key_and_another_secret_tells_nothing(
    db: Database, door: Door
) -> None:
    asked = await ask(door)
    wrong = (db, door.club_id, asked.request_id, "lcc_" + "x" * 43)
    with pytest.raises(NotAllowed):
        await claim_key(*wrong)
    await reject_join_request(db, door.owner, door.club_id, asked.request_id)
    assert await code_of(claim_key(*wrong)) == "claim_secret_wrong"
    assert await code_of(claim_key(*wrong[:3], asked.claim_secret)) == "request_decided"
    assert await code_of(claim_key(db, door.club_id, door.club_id, asked.claim_secret)) == (
        "join_request_unknown"
    )


async def test_a_claim_secret_ages_from_the_approval_and_is_renewed(db: Database, door: Door) -> None:
    asked = await ask(door)
    agent_id = await let_in(door, asked)
    await db.pool.execute(
        "update join_requests set claim_expires_at = lastcall_now() where id = $1", asked.request_id
    )
    claim = (db, door.club_id, asked.request_id)
    assert await code_of(claim_key(*claim, asked.claim_secret)) == "claim_expired"
    secret = await service.refresh_claim(db, door.owner, door.club_id, agent_id)
    assert await code_of(claim_key(*claim, asked.claim_secret)) == "claim_secret_wrong"
    assert (await claim_key(*claim, secret)).agent_id == agent_id
    with pytest.raises(Conflict, match="has claimed"):
        await service.refresh_claim(db, door.owner, door.club_id, agent_id)


@pytest.mark.parametrize("end", [service.block_agent, service.revoke_keys, service.rotate_key])
async def test_what_ends_keys_ends_a_claim_that_nobody_used(db: Database, door: Door, end: Any) -> None:
    asked = await ask(door)
    agent_id = await let_in(door, asked)
    await end(db, door.owner, door.club_id, agent_id)
    claim = claim_key(db, door.club_id, asked.request_id, asked.claim_secret)
    assert await code_of(claim) == "claim_secret_wrong"


async def test_a_name_that_is_taken_gets_a_number(db: Database, door: Door) -> None:
    names = []
    for asked in [await ask(door, name) for name in ("Robot", "robot", "ROBOT")]:
        agent_id = await let_in(door, asked)
        async with db.read() as tx:
            names.append((await agent_in(tx, door.club_id, agent_id)).name)
    assert names == ["Robot", "robot 2", "ROBOT 3"]


async def test_a_rotated_key_is_good_for_a_day_more_and_not_longer(db: Database, robot: Robot) -> None:
    made = await robot.does(service.rotate_key)
    assert made.generation == 2
    assert await robot.is_known()
    async with db.read() as tx:
        new, old = await keys_of(tx, robot.door.owner, robot.door.club_id, robot.actor.agent_id)
        shown = await own_view(tx, robot.actor)
    assert new.expires_at is None
    assert shown.key_expires_at == old.expires_at
    assert old.expires_at is not None
    # A day, reckoned a statement before the new key is written.
    assert timedelta(0) <= timedelta(hours=24) - (old.expires_at - new.created_at) < timedelta(minutes=1)
    # A second rotation does not give the first key another day.
    await robot.does(service.rotate_key)
    async with db.read() as tx:
        keys = await keys_of(tx, robot.door.owner, robot.door.club_id, robot.actor.agent_id)
    assert keys[-1].expires_at == old.expires_at
    await db.pool.execute(
        "update agent_keys set expires_at = lastcall_now() where id = $1", robot.actor.key_id
    )
    assert not await robot.is_known()
    assert await actor_of_key(db, made.key) is not None


async def test_a_rotation_can_end_the_old_key_at_once(robot: Robot) -> None:
    await robot.does(service.rotate_key, ends_old_at_once=True)
    assert not await robot.is_known()
    assert await robot.refused() == "agent_key_refused"


async def test_a_blocked_agent_has_no_key_and_gets_none_until_it_is_unblocked(
    db: Database, robot: Robot
) -> None:
    await robot.does(service.block_agent)
    assert not await robot.is_known()
    assert await robot.refused() == "agent_key_refused"
    assert await code_of(robot.does(service.rotate_key)) == "agent_blocked"
    assert (await robot.does(service.unblock_agent)).status == "active"
    assert not await robot.is_known()
    made = await robot.does(service.rotate_key)
    assert await actor_of_key(db, made.key) is not None


async def test_a_paused_agent_is_told_who_it_is_and_does_nothing(db: Database, robot: Robot) -> None:
    assert await robot.may(AgentGrant.ASK)
    await robot.does(service.pause_agent)
    assert await robot.is_known()
    assert await robot.refused(AgentGrant.ASK) == "agent_paused"
    async with db.read() as tx:
        assert (await own_view(tx, robot.actor)).pause_reason == "manual"
    await robot.does(service.resume_agent)
    assert await robot.may(AgentGrant.ASK)


async def test_a_budget_resumes_only_what_a_budget_paused(db: Database, robot: Robot) -> None:
    where = (robot.door.club_id, robot.actor.agent_id)

    async def by_budget(step: Any) -> bool:
        async with db.transaction() as tx:
            await bump_gate(tx, robot.door.club_id)
            done: bool = await step(tx, *where, by=BUDGET)
        return done

    assert await by_budget(service.pause_agent_for_budget)
    assert await code_of(robot.does(service.resume_agent)) == "paused_by_budget"
    assert await by_budget(service.resume_agent_after_budget)
    assert await by_budget(service.pause_agent_for_budget)
    # Somebody pauses it by hand on top: the budget's end does not wake it.
    await robot.does(service.pause_agent)
    assert not await by_budget(service.resume_agent_after_budget)
    assert not await by_budget(service.pause_agent_for_budget)
    assert (await robot.view()).pause_reason == "manual"
    await robot.does(service.block_agent)
    assert not await by_budget(service.pause_agent_for_budget)
    assert (await robot.view()).status == "blocked"


async def test_a_paused_club_stops_its_agents_and_an_archived_one_knows_none(
    db: Database, door: Door, robot: Robot
) -> None:
    await pause_club(db, door.owner, door.club_id)
    assert await robot.refused(AgentGrant.ASK) == "club_paused"
    await archive_club(db, None, door.club_id)
    assert not await robot.is_known()
    assert await robot.refused() == "agent_key_refused"


async def test_a_grant_that_was_taken_back_is_missed_by_a_call_under_way(robot: Robot) -> None:
    seen = (await robot.view()).version
    fields = AgentFields("Robot", None, frozenset({AgentGrant.REPORT_RUNS}))
    changed = await robot.does(service.edit_agent, fields=fields, seen=seen)
    assert robot.actor.grants == ASK
    assert await robot.refused(AgentGrant.ASK) == "grant_missing"
    with pytest.raises(Conflict) as stale:
        await robot.does(service.edit_agent, fields=fields, seen=seen)
    assert stale.value.fresh == changed


async def test_nobody_sees_through_an_agent_what_they_may_not_see(
    db: Database, door: Door, robot: Robot
) -> None:
    await change_role(
        db, door.owner, door.club_id, door.roles["event_staff"], permissions=[Permission.MANAGE_AGENTS]
    )
    await assign_role(db, door.owner, door.club_id, door.roles["event_staff"], door.guest.person_id)
    where = (door.club_id, robot.actor.agent_id)

    async def edit(grants: set[AgentGrant]) -> AgentView:
        seen = (await robot.view()).version
        fields = AgentFields("Robot", None, frozenset(grants))
        return await service.edit_agent(db, door.guest, *where, fields, seen)

    assert await code_of(edit({AgentGrant.READ_INBOX})) == "grant_not_yours"
    assert (await edit({AgentGrant.REPORT_COSTS})).grants == (AgentGrant.REPORT_COSTS,)


async def test_nobody_gets_the_key_of_an_agent_that_sees_what_they_may_not_see(
    db: Database, door: Door
) -> None:
    await change_role(
        db, door.owner, door.club_id, door.roles["event_staff"], permissions=[Permission.MANAGE_AGENTS]
    )
    await assign_role(db, door.owner, door.club_id, door.roles["event_staff"], door.guest.person_id)
    asked = await ask(door)
    await approve_join_request(
        db, door.owner, door.club_id, asked.request_id, agent_grants={AgentGrant.READ_INBOX}
    )
    agent_id = await db.pool.fetchval("select agent_id from join_requests where id = $1", asked.request_id)
    for command in (service.rotate_key, service.refresh_claim):
        assert await code_of(command(db, door.guest, door.club_id, agent_id)) == "grant_not_yours"
        assert await command(db, door.owner, door.club_id, agent_id)
    assert await service.revoke_keys(db, door.guest, door.club_id, agent_id) == 1, (
        "whoever sees less may stop it"
    )


async def test_an_agent_may_write_its_own_name_otherwise(robot: Robot) -> None:
    for name in ("robot", "ROBOT"):
        fields = AgentFields(name, None, ASK)
        changed = await robot.does(service.edit_agent, fields=fields, seen=(await robot.view()).version)
        assert changed.name == name


async def test_an_agent_of_another_club_is_unknown(db: Database, door: Door) -> None:
    other = await let_in_agent(db, door.club_id, door.owner.person_id, ASK)
    stranger = Actor(door.guest.person_id, "Guest", is_operator=False)
    with pytest.raises(NotFound):
        await service.block_agent(db, stranger, door.club_id, other[0].agent_id)
    assert await actor_of_key(db, other[1]) is not None
    assert await actor_of_key(db, "lca_" + "y" * 43) is None
    with pytest.raises(NotSignedIn):
        async with db.read() as tx:
            await require_agent(
                tx, AgentActor(other[0].agent_id, door.club_id, "Robot", door.club_id, frozenset(AgentGrant))
            )


async def test_an_archived_club_gives_no_agent_its_key(db: Database, door: Door) -> None:
    asked = await ask(door)
    await let_in(door, asked)
    await archive_club(db, None, door.club_id)
    claim = claim_key(db, door.club_id, asked.request_id, asked.claim_secret)
    assert await code_of(claim) == "club_inactive"
    assert await db.pool.fetchval("select count(*) from agent_keys where club_id = $1", door.club_id) == 0
