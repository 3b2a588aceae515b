"""Commands on agents: let one in, change it, pause it, block it, give it keys.

Whatever takes something from an agent moves the club's gate first, which the agent's own transactions hold
(``policy.require_agent``): after it committed, nothing of that agent commits by the old rights.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import func, insert, select, update

from lastcall.access.agents.claims import AGENTS_TOPIC, CLAIM_LIFE, end_claim_in, renew_claim_in
from lastcall.access.agents.keys import OVERLAP, NewKey, end_keys_in, make_key
from lastcall.access.agents.queries import AgentView, agent_in
from lastcall.access.agents.tables import Agent
from lastcall.access.requests import Claim, write_claim
from lastcall.access.tables import JoinRequest
from lastcall.clubs.activity import System, log
from lastcall.clubs.gates import bump_gate
from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import Standing, require, require_open
from lastcall.db.bus import Hint
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.transaction import Transaction
from lastcall.errors import Conflict, NotAllowed
from lastcall.names import valid_name, valid_note
from lastcall.people.actor import Actor
from lastcall.people.agent_grants import AgentGrant
from lastcall.people.scopes import Scope

AGENT_NAME_LENGTH = 120  # characters, as in the request that it came by
DESCRIPTION_LENGTH = 500  # characters
MOST_AGENTS = 100  # a club, blocked ones included: what a page and a tool can show at once


@dataclass(frozen=True)
class AgentFields:
    """What staff set of an agent."""

    name: str
    description: str | None
    grants: frozenset[AgentGrant]


async def create_agent_in(
    tx: Transaction,
    club_id: UUID,
    request_id: UUID,
    grants: Collection[AgentGrant],
    responsible_id: UUID,
    *,
    by: Actor | System,
) -> UUID:
    """Let in the agent of an approved request, in the transaction that approves it; answers the agent's id. The
    secret that the agent got with its request is good for a key from now on, for ``CLAIM_LIFE``.

    The caller has moved the club's gate (so that two agents cannot take one name) and judged who may give these
    grants. A name that is taken gets a number. This is no fact of the candidate rule and no signal (ACC-11). Raises
    ``Conflict`` when the club has ``MOST_AGENTS``.
    """
    if await tx.scalar(select(func.count()).where(Agent.club_id == club_id)) >= MOST_AGENTS:
        raise Conflict(
            "agents_too_many", f"This club has {MOST_AGENTS} agents.", advice="Let one of them do this too."
        )
    agent_id = new_id()
    mine = (JoinRequest.club_id == club_id, JoinRequest.id == request_id)
    asked = (
        await tx.execute(select(JoinRequest.agent_name, JoinRequest.agent_description).where(*mine))
    ).one()
    name = await _free_name(tx, club_id, asked.agent_name)
    given = sorted(set(grants))
    await tx.execute(
        insert(Agent).values(
            club_id=club_id,
            id=agent_id,
            name=name,
            description=asked.agent_description,
            grants=given,
            responsible_id=responsible_id,
        )
    )
    claim: Claim = {"agent_id": agent_id, "claim_expires_at": NOW + CLAIM_LIFE}
    await write_claim(tx, club_id, JoinRequest.id == request_id, claim)
    await _note(tx, by, club_id, agent_id, "agent.created", {"name": name, "grants": given})
    return agent_id


async def edit_agent(
    db: Database, actor: Actor, club_id: UUID, agent_id: UUID, fields: AgentFields, seen: datetime
) -> AgentView:
    """Set name, description and grants. Needs ``manage_agents``; and ``decide_access`` to give ``read_inbox``, so
    that nobody sees through an agent what they may not see themselves.

    Raises ``Conflict`` with the fresh agent when it changed since ``seen``, and for a name that another has.
    """
    name = valid_name(fields.name, most=AGENT_NAME_LENGTH, what="The agent's name")
    description = valid_note(fields.description, most=DESCRIPTION_LENGTH)
    async with _held(db, actor, club_id, agent_id) as (tx, agent, standing):
        if agent.version != seen:
            raise Conflict(
                "agent_changed", "Somebody changed this agent meanwhile.", advice="Look again.", fresh=agent
            )
        _require_own_sight(standing, fields.grants - set(agent.grants))
        if await _is_taken(tx, club_id, name, but_of=agent_id):
            raise Conflict("agent_name_taken", "Another agent has this name.", field="name")
        given = sorted(fields.grants)
        await _write(tx, club_id, agent_id, {"name": name, "description": description, "grants": given})
        await _note(tx, actor, club_id, agent_id, "agent.edited", {"name": name, "grants": given})
        return await agent_in(tx, club_id, agent_id)


async def pause_agent(db: Database, actor: Actor, club_id: UUID, agent_id: UUID) -> AgentView:
    """Stop what the agent does until somebody resumes it; its keys stay. An agent that a budget paused is from now
    on paused by hand. Doing it again is nothing to do. ``Conflict`` for a blocked one.
    """
    async with _held(db, actor, club_id, agent_id) as (tx, agent, _):
        _require_not_blocked(agent)
        if agent.pause_reason != "manual":
            await _write(tx, club_id, agent_id, _paused("manual"))
            await _note(tx, actor, club_id, agent_id, "agent.paused", {"name": agent.name})
        return await agent_in(tx, club_id, agent_id)


async def resume_agent(db: Database, actor: Actor, club_id: UUID, agent_id: UUID) -> AgentView:
    """Let an agent go on that was paused by hand. ``Conflict`` for one that a budget paused, and a blocked one."""
    async with _held(db, actor, club_id, agent_id) as (tx, agent, _):
        _require_not_blocked(agent)
        if agent.pause_reason == "budget":
            raise Conflict(
                "paused_by_budget",
                "A budget paused this agent.",
                advice="Raise the budget, which resumes it.",
            )
        if agent.pause_reason == "manual":
            await _write(tx, club_id, agent_id, _GOES_ON)
            await _note(tx, actor, club_id, agent_id, "agent.resumed", {"name": agent.name})
        return await agent_in(tx, club_id, agent_id)


async def pause_agent_for_budget(tx: Transaction, club_id: UUID, agent_id: UUID, *, by: System) -> bool:
    """Pause an active agent in the accounting transaction, which has moved the club's gate; whether it did. One that
    is paused by hand keeps that reason, a blocked one stays blocked.
    """
    active = (Agent.status == "active",)
    return await _budget_step(tx, club_id, agent_id, active, _paused("budget"), "agent.paused", by)


async def resume_agent_after_budget(tx: Transaction, club_id: UUID, agent_id: UUID, *, by: System) -> bool:
    """Let an agent go on that a budget paused, and no other; whether it did. The caller has moved the gate."""
    by_budget = (Agent.status == "paused", Agent.pause_reason == "budget")
    return await _budget_step(tx, club_id, agent_id, by_budget, _GOES_ON, "agent.resumed", by)


async def block_agent(db: Database, actor: Actor, club_id: UUID, agent_id: UUID) -> AgentView:
    """Shut the agent out: every key and the claim secret are good no more, at once. Twice is once."""
    async with _held(db, actor, club_id, agent_id) as (tx, agent, _):
        if agent.status != "blocked":
            # Keys before the agent, as a call notes that it used one (``keys._USED``), which waits for no gate.
            await end_keys_in(tx, club_id, agent_id)
            await _write(tx, club_id, agent_id, {**_GOES_ON, "status": "blocked"})
            await end_claim_in(tx, club_id, agent_id)
            await _note(tx, actor, club_id, agent_id, "agent.blocked", {"name": agent.name})
        return await agent_in(tx, club_id, agent_id)


async def unblock_agent(db: Database, actor: Actor, club_id: UUID, agent_id: UUID) -> AgentView:
    """Let a blocked agent be one again. It has no key until somebody makes one. Twice is once."""
    async with _held(db, actor, club_id, agent_id) as (tx, agent, _):
        if agent.status == "blocked":
            await _write(tx, club_id, agent_id, _GOES_ON)
            await _note(tx, actor, club_id, agent_id, "agent.unblocked", {"name": agent.name})
        return await agent_in(tx, club_id, agent_id)


async def take_responsibility(db: Database, actor: Actor, club_id: UUID, agent_id: UUID) -> AgentView:
    """From now on the actor answers for the agent. Twice is once."""
    async with _held(db, actor, club_id, agent_id) as (tx, agent, _):
        if agent.responsible_id != actor.person_id:
            await _write(tx, club_id, agent_id, {"responsible_id": actor.person_id})
            await _note(tx, actor, club_id, agent_id, "agent.responsible", {"name": agent.name})
        return await agent_in(tx, club_id, agent_id)


async def rotate_key(
    db: Database, actor: Actor, club_id: UUID, agent_id: UUID, *, ends_old_at_once: bool = False
) -> NewKey:
    """A new key, shown this once. The older ones are good for ``OVERLAP`` more, or end at once; a claim secret that
    nobody used ends. Whoever has the key is the agent, so one with ``read_inbox`` gets it from somebody with
    ``decide_access``. ``Conflict`` for a blocked agent and in an archived club.
    """
    async with _held(db, actor, club_id, agent_id) as (tx, agent, standing):
        _require_own_sight(standing, agent.grants)
        _require_not_blocked(agent)
        await require_open(tx, club_id)
        await end_keys_in(tx, club_id, agent_id, after=None if ends_old_at_once else OVERLAP)
        await end_claim_in(tx, club_id, agent_id)
        made = await make_key(tx, club_id, agent_id)
        details = {"name": agent.name, "generation": made.generation, "old_ended": ends_old_at_once}
        await _note(tx, actor, club_id, agent_id, "agent.rotated", details)
    return made


async def revoke_keys(db: Database, actor: Actor, club_id: UUID, agent_id: UUID) -> int:
    """End every key and the claim secret at once; answers how many keys were good until now."""
    async with _held(db, actor, club_id, agent_id) as (tx, agent, _):
        ended = await end_keys_in(tx, club_id, agent_id)
        await end_claim_in(tx, club_id, agent_id)
        await _note(tx, actor, club_id, agent_id, "agent.revoked", {"name": agent.name, "keys": ended})
    return ended


async def refresh_claim(db: Database, actor: Actor, club_id: UUID, agent_id: UUID) -> str:
    """A new claim secret in place of one that nobody used, shown this once. Who may is asked as for a new key.
    ``Conflict`` once a key was claimed, and for a blocked agent.
    """
    async with _held(db, actor, club_id, agent_id) as (tx, agent, standing):
        _require_own_sight(standing, agent.grants)
        _require_not_blocked(agent)
        await require_open(tx, club_id)
        secret = await renew_claim_in(tx, club_id, agent_id)
        await _note(tx, actor, club_id, agent_id, "agent.claim_renewed", {"name": agent.name})
    return secret


_GOES_ON = {"status": "active", "pause_reason": None, "paused_at": None}


def _paused(reason: str) -> dict[str, Any]:
    return {"status": "paused", "pause_reason": reason, "paused_at": NOW}


@asynccontextmanager
async def _held(
    db: Database, actor: Actor, club_id: UUID, agent_id: UUID
) -> AsyncIterator[tuple[Transaction, AgentView, Standing]]:
    """The agent as it is with the club's gate held by this transaction alone. Raises as ``require`` does."""
    async with db.transaction() as tx:
        await bump_gate(tx, club_id)
        standing = await require(tx, actor, club_id, Permission.MANAGE_AGENTS, scope=Scope.ACCESS)
        yield tx, await agent_in(tx, club_id, agent_id), standing


async def _write(tx: Transaction, club_id: UUID, agent_id: UUID, values: dict[str, Any]) -> None:
    await tx.execute(
        update(Agent)
        .where(Agent.club_id == club_id, Agent.id == agent_id)
        .values(**values, updated_at=Agent.forward())
    )


async def _budget_step(
    tx: Transaction,
    club_id: UUID,
    agent_id: UUID,
    leaves: tuple[Any, ...],
    values: dict[str, Any],
    action: str,
    by: System,
) -> bool:
    name = await tx.scalar(
        update(Agent)
        .where(Agent.club_id == club_id, Agent.id == agent_id, *leaves)
        .values(**values, updated_at=Agent.forward())
        .returning(Agent.name)
    )
    if name is not None:
        await _note(tx, by, club_id, agent_id, action, {"name": name, "reason": "budget"})
    return name is not None


async def _note(
    tx: Transaction, by: Actor | System, club_id: UUID, agent_id: UUID, action: str, details: dict[str, Any]
) -> None:
    await log(tx, club_id, by, action, "agent", agent_id, details)
    tx.publish(Hint(club_id, AGENTS_TOPIC))


def _require_own_sight(standing: Standing, given: Collection[AgentGrant]) -> None:
    """Nobody sees through an agent what they may not see themselves."""
    if AgentGrant.READ_INBOX in given and not standing.holds(Permission.DECIDE_ACCESS):
        raise NotAllowed(
            "grant_not_yours",
            f"“{AgentGrant.READ_INBOX.label}” is given by those who may see join requests themselves.",
            advice="Ask somebody who decides join requests.",
        )


def _require_not_blocked(agent: AgentView) -> None:
    if agent.status == "blocked":
        raise Conflict("agent_blocked", "This agent is blocked.", advice="Unblock it first.", fresh=agent)


async def _is_taken(tx: Transaction, club_id: UUID, name: str, *, but_of: UUID | None = None) -> bool:
    """Whether another agent has the name, by what the database takes for the same letter."""
    same = (
        Agent.club_id == club_id,
        func.lower(Agent.name) == func.lower(name),
        Agent.id.is_distinct_from(but_of),
    )
    return await tx.scalar(select(Agent.id).where(*same)) is not None


async def _free_name(tx: Transaction, club_id: UUID, name: str) -> str:
    """The name, or the name with the first number that nobody has."""
    free, number = name, 1
    while await _is_taken(tx, club_id, free):
        number += 1
        ending = f" {number}"
        free = name[: AGENT_NAME_LENGTH - len(ending)].rstrip() + ending
    return free
