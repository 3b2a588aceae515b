"""Programs at a club's door: each waits under its own secret, is heard of again by it, and is let in by a person."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from tests.access.conftest import Door

from lastcall.access.acceptance import AgentAcceptance, accept_invite_as_agent
from lastcall.access.agents.claims import PREFIX as CLAIM_PREFIX
from lastcall.access.deciding import Verdict, approve_join_request, decide_many, delete_join_request
from lastcall.access.invites import InviteKind, NewInvite, create_invite
from lastcall.access.requests import AgentSubject, RequestStatus
from lastcall.clubs.permissions import Permission
from lastcall.clubs.staff import assign_role, revoke_role
from lastcall.db.database import Database
from lastcall.deadlines.signals import Signal
from lastcall.decisions.retention.kinds.join_request import JOIN_REQUEST
from lastcall.errors import Conflict, Invalid, LastcallError, NotAllowed, NotFound
from lastcall.people.actor import Actor
from lastcall.people.agent_grants import AgentGrant
from lastcall.people.tokens import token_hash
from lastcall.testing.staff import change_role

ASK, RUNS, COSTS = AgentGrant.ASK, AgentGrant.REPORT_RUNS, AgentGrant.REPORT_COSTS


async def agents_invite(door: Door, by: Actor | None = None, **more: Any) -> NewInvite:
    given = {"kind": InviteKind.AGENT, "agent_grants": [ASK, RUNS]} | more
    return await create_invite(door.db, by or door.owner, door.club_id, (), **given)


async def asks(door: Door, name: str = "Robot", **more: Any) -> AgentAcceptance:
    invite = await agents_invite(door, **more)
    return await accept_invite_as_agent(door.db, invite.token, AgentSubject(name, "I count."))


async def agents(door: Door) -> list[Any]:
    return list(
        await door.db.pool.fetch("select * from agents where club_id = $1 order by name", door.club_id)
    )


async def test_an_agent_gets_a_secret_once_of_which_only_the_hash_is_kept(db: Database, door: Door) -> None:
    made = await asks(door)
    assert made.claim_secret is not None
    assert made.claim_secret.startswith(CLAIM_PREFIX)
    (request,) = await door.requests()
    assert request["claim_secret_hash"] == token_hash(made.claim_secret)
    assert (request["agent_name"], request["agent_description"]) == ("Robot", "I count.")
    (use,) = await db.pool.fetch("select * from invite_uses where club_id = $1", door.club_id)
    assert (use["person_id"], use["request_id"]) == (None, request["id"])


@pytest.mark.clause("ACC-02", "ACC-14")
async def test_an_agent_is_heard_of_again_by_its_secret_and_may_say_anew_who_it_is(
    db: Database, door: Door
) -> None:
    invite = await agents_invite(door)
    made = await accept_invite_as_agent(db, invite.token, AgentSubject("Robot", "I count."))
    (before,) = await door.requests()
    heard: list[Signal] = []
    db.bus.subscribe(Signal, heard.append)
    again = await accept_invite_as_agent(
        db, invite.token, AgentSubject("Robot the Second"), claim_secret=made.claim_secret
    )
    assert again == AgentAcceptance(door.club_id, made.request_id, RequestStatus.PENDING, None)
    (after,) = await door.requests()
    assert (after["agent_name"], after["agent_description"]) == ("Robot the Second", "I count.")
    assert after["claim_secret_hash"] == before["claim_secret_hash"], "no new secret"
    assert after["activity_at"] > before["activity_at"]
    assert after["archive_due_at"] == after["activity_at"] + timedelta(days=90)
    assert JOIN_REQUEST.owner in {signal.owner for signal in heard}


@pytest.mark.clause("ACC-14")
async def test_without_its_secret_or_a_valid_invite_nobody_replays_anything(db: Database, door: Door) -> None:
    robot = AgentSubject("Robot")
    invite = await agents_invite(door)
    made = await accept_invite_as_agent(db, invite.token, robot)
    other = await asks(door, "Other")
    before = await door.requests()
    for secret in (None, CLAIM_PREFIX + "x" * 43, other.claim_secret):
        with pytest.raises(NotFound):
            await accept_invite_as_agent(db, invite.token, robot, claim_secret=secret)
    await db.pool.execute("update invites set expires_at = lastcall_now() where id = $1", invite.id)
    with pytest.raises(NotFound):
        await accept_invite_as_agent(db, invite.token, robot, claim_secret=made.claim_secret)
    assert await door.requests() == before


async def test_two_agents_of_one_invite_never_get_each_others_answer(db: Database, door: Door) -> None:
    invite = await agents_invite(door, max_uses=2)
    robot = AgentSubject("Robot")
    first, second = [await accept_invite_as_agent(db, invite.token, robot) for _ in range(2)]
    assert first.request_id != second.request_id
    assert first.claim_secret != second.claim_secret
    for one in (first, second):
        replayed = await accept_invite_as_agent(db, invite.token, robot, claim_secret=one.claim_secret)
        assert replayed.request_id == one.request_id
        await approve_join_request(db, door.owner, door.club_id, one.request_id)
    assert [agent["name"] for agent in await agents(door)] == ["Robot", "Robot 2"]


async def test_whoever_lets_an_agent_in_chooses_among_what_its_invite_offers_and_answers_for_it(
    db: Database, door: Door
) -> None:
    made = await asks(door)
    for beyond in ([COSTS], [ASK, COSTS]):
        with pytest.raises(Invalid) as refused:
            await approve_join_request(db, door.owner, door.club_id, made.request_id, agent_grants=beyond)
        assert refused.value.code == "grants_beyond_invite"
    assert await agents(door) == []
    await approve_join_request(db, door.deputy, door.club_id, made.request_id, agent_grants=[RUNS])
    (agent,) = await agents(door)
    assert (agent["name"], agent["description"], agent["grants"]) == ("Robot", "I count.", ["report_runs"])
    assert agent["responsible_id"] == door.deputy.person_id
    (request,) = await door.requests()
    assert (request["status"], request["agent_id"]) == ("approved", agent["id"])
    assert request["archive_due_at"] is None
    with pytest.raises(Conflict):
        await delete_join_request(db, door.owner, door.club_id, made.request_id)


@pytest.mark.clause("ACC-04")
async def test_of_many_who_approve_an_agent_at_once_one_lets_it_in_once(db: Database, door: Door) -> None:
    made = await asks(door)
    approvals = (
        approve_join_request(db, who, door.club_id, made.request_id)
        for who in (door.owner, door.deputy, door.owner)
    )
    outcomes = await asyncio.gather(*approvals, return_exceptions=True)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Conflict", "Conflict", "NoneType"]
    assert len(await agents(door)) == 1


async def test_an_agent_needs_somebody_who_manages_agents_now(db: Database, door: Door) -> None:
    made = await asks(door, by=door.deputy)
    unused = await agents_invite(door, by=door.deputy)
    await change_role(
        db, door.owner, door.club_id, door.roles["moderator"], permissions=[Permission.DECIDE_ACCESS]
    )
    await assign_role(db, door.owner, door.club_id, door.roles["moderator"], door.guest.person_id)
    await revoke_role(db, door.owner, door.club_id, door.roles["admin"], door.deputy.person_id)
    with pytest.raises(NotAllowed) as refused:
        await approve_join_request(db, door.guest, door.club_id, made.request_id)
    assert refused.value.code == "agents_not_managed"
    with pytest.raises(NotFound):
        await accept_invite_as_agent(db, unused.token, AgentSubject("Robot"))
    await approve_join_request(db, door.owner, door.club_id, made.request_id)
    assert len(await agents(door)) == 1


async def test_a_person_is_let_in_with_no_grants_and_an_invite_for_people_offers_none(
    db: Database, door: Door
) -> None:
    with pytest.raises(Invalid) as refused:
        await door.invite(agent_grants=[ASK])
    assert refused.value.field == "agent_grants"
    made = await asks(door, agent_grants=[])
    await approve_join_request(db, door.owner, door.club_id, made.request_id)
    assert [agent["grants"] for agent in await agents(door)] == [[]]


async def test_many_decisions_are_each_by_itself_in_the_order_in_which_they_were_asked_for(
    db: Database, door: Door
) -> None:
    made = [await asks(door, name) for name in ("A", "B", "C")]
    await approve_join_request(db, door.owner, door.club_id, made[1].request_id)
    ids: list[UUID] = [one.request_id for one in made]
    outcomes = await decide_many(db, door.deputy, door.club_id, Verdict.REJECT, ids, note="Not now.")
    codes = [one.problem.code if isinstance(one.problem, LastcallError) else None for one in outcomes]
    assert ([one.request_id for one in outcomes], codes) == (ids, [None, "request_decided", None])
    statuses = [(row["status"], row["decision_note"]) for row in await door.requests()]
    assert statuses == [("rejected", "Not now."), ("approved", None), ("rejected", "Not now.")]
    for many in ([], ids * 40):
        with pytest.raises(Invalid):
            await decide_many(db, door.owner, door.club_id, Verdict.APPROVE, many)
