"""Agents for tests that are about something else than how one is let in."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from sqlalchemy import insert

from lastcall.access.agents.keys import actor_of_key, make_key
from lastcall.access.agents.tables import Agent
from lastcall.db.database import Database
from lastcall.db.ids import encode_id, new_id
from lastcall.people.actor import AgentActor
from lastcall.people.agent_grants import AgentGrant


async def let_in_agent(
    db: Database,
    club_id: UUID,
    responsible_id: UUID,
    grants: Collection[AgentGrant] = tuple(AgentGrant),
    name: str | None = None,
) -> tuple[AgentActor, str]:
    """An active agent of the club, with these grants and a live key: who it is, and the key."""
    agent_id = new_id()
    async with db.transaction() as tx:
        await tx.execute(
            insert(Agent).values(
                club_id=club_id,
                id=agent_id,
                name=name or f"Agent {encode_id(agent_id)[-8:]}",
                grants=sorted(grants),
                responsible_id=responsible_id,
            )
        )
        made = await make_key(tx, club_id, agent_id)
    actor = await actor_of_key(db, made.key)
    assert actor is not None
    return actor, made.key
