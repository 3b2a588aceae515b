"""Reads about agents: what an agent is told of itself, and what staff see."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, select

from lastcall.access.agents.policy import LIVE_KEY, agent_unknown, key_refused
from lastcall.access.agents.tables import Agent, AgentKey
from lastcall.access.tables import JoinRequest
from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import require
from lastcall.clubs.tables import Club
from lastcall.db.transaction import Reader
from lastcall.people.actor import Actor, AgentActor
from lastcall.people.agent_grants import AgentGrant
from lastcall.people.scopes import Scope
from lastcall.people.tables import Person


@dataclass(frozen=True)
class OwnView:
    """An agent as it is told about itself. ``pause_reason`` is ``club`` where the whole club is paused."""

    id: UUID
    name: str
    description: str | None
    club_id: UUID
    club_name: str
    club_slug: str
    grants: tuple[AgentGrant, ...]
    pause_reason: str | None
    key_expires_at: datetime | None


@dataclass(frozen=True)
class KeyView:
    """A live key as staff see it; ``hint`` is how it begins."""

    id: UUID
    generation: int
    hint: str
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None


@dataclass(frozen=True)
class AgentView:
    """An agent as staff see it. ``version`` is what an edit is compared with; ``claim_expires_at`` is until when it
    may claim its first key, null once it has."""

    id: UUID
    name: str
    description: str | None
    status: str
    pause_reason: str | None
    grants: tuple[AgentGrant, ...]
    responsible_id: UUID
    responsible: str
    last_seen_at: datetime | None
    created_at: datetime
    version: datetime
    request_id: UUID | None
    claim_expires_at: datetime | None


async def own_view(tx: Reader, agent: AgentActor) -> OwnView:
    """What the agent is and may do now. Raises ``NotSignedIn`` once its key is good no more."""
    row = (
        await tx.execute(
            select(
                Agent.id,
                Agent.name,
                Agent.description,
                Agent.grants,
                Agent.pause_reason,
                Club.id.label("club_id"),
                Club.name.label("club_name"),
                Club.slug.label("club_slug"),
                Club.state,
                AgentKey.expires_at.label("key_expires_at"),
            )
            .join(AgentKey, (AgentKey.club_id == Agent.club_id) & (AgentKey.agent_id == Agent.id))
            .join(Club, Club.id == Agent.club_id)
            .where(
                Agent.club_id == agent.club_id,
                Agent.id == agent.agent_id,
                Agent.status != "blocked",
                AgentKey.id == agent.key_id,
                *LIVE_KEY,
            )
        )
    ).one_or_none()
    if row is None:
        raise key_refused()
    return OwnView(
        id=row.id,
        name=row.name,
        description=row.description,
        club_id=row.club_id,
        club_name=row.club_name,
        club_slug=row.club_slug,
        grants=_grants(row),
        pause_reason="club" if row.state == "paused" else row.pause_reason,
        key_expires_at=row.key_expires_at,
    )


async def agents_of(tx: Reader, actor: Actor, club_id: UUID) -> list[AgentView]:
    """The club's agents by name; needs ``manage_agents``."""
    await require(tx, actor, club_id, Permission.MANAGE_AGENTS, scope=Scope.READ)
    rows = await tx.execute(_agents(club_id).order_by(Agent.name, Agent.id))
    return [_view(row) for row in rows.all()]


async def read_agent(tx: Reader, actor: Actor, club_id: UUID, agent_id: UUID) -> AgentView:
    """One agent of the club; needs ``manage_agents``. ``NotFound`` for one of another club."""
    await require(tx, actor, club_id, Permission.MANAGE_AGENTS, scope=Scope.READ)
    return await agent_in(tx, club_id, agent_id)


async def agent_in(tx: Reader, club_id: UUID, agent_id: UUID) -> AgentView:
    """The same where the caller has judged who may."""
    row = (await tx.execute(_agents(club_id).where(Agent.id == agent_id))).one_or_none()
    if row is None:
        raise agent_unknown()
    return _view(row)


async def keys_of(tx: Reader, actor: Actor, club_id: UUID, agent_id: UUID) -> list[KeyView]:
    """The agent's live keys, the newest first; needs ``manage_agents``. ``NotFound`` as for ``read_agent``."""
    await require(tx, actor, club_id, Permission.MANAGE_AGENTS, scope=Scope.READ)
    await agent_in(tx, club_id, agent_id)
    rows = await tx.execute(
        select(
            AgentKey.id,
            AgentKey.generation,
            AgentKey.hint,
            AgentKey.created_at,
            AgentKey.expires_at,
            AgentKey.last_used_at,
        )
        .where(AgentKey.club_id == club_id, AgentKey.agent_id == agent_id, *LIVE_KEY)
        .order_by(AgentKey.generation.desc())
    )
    return [KeyView(**row._asdict()) for row in rows.all()]


def _agents(club_id: UUID) -> Any:
    return (
        select(
            Agent.id,
            Agent.name,
            Agent.description,
            Agent.status,
            Agent.pause_reason,
            Agent.grants,
            Agent.responsible_id,
            Person.display_name.label("responsible"),
            Agent.last_seen_at,
            Agent.created_at,
            Agent.updated_at,
            JoinRequest.id.label("request_id"),
            JoinRequest.claim_expires_at,
            JoinRequest.claimed_at,
        )
        .join(Person, Person.id == Agent.responsible_id)
        .outerjoin(JoinRequest, (JoinRequest.club_id == Agent.club_id) & (JoinRequest.agent_id == Agent.id))
        .where(Agent.club_id == club_id)
    )


def _view(row: Row[Any]) -> AgentView:
    return AgentView(
        id=row.id,
        name=row.name,
        description=row.description,
        status=row.status,
        pause_reason=row.pause_reason,
        grants=_grants(row),
        responsible_id=row.responsible_id,
        responsible=row.responsible,
        last_seen_at=row.last_seen_at,
        created_at=row.created_at,
        version=row.updated_at,
        request_id=row.request_id,
        claim_expires_at=None if row.claimed_at else row.claim_expires_at,
    )


def _grants(row: Row[Any]) -> tuple[AgentGrant, ...]:
    return tuple(grant for grant in AgentGrant if grant in row.grants)
