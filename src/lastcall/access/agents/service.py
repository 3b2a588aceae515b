"""Commands on agents: let one in, change it, pause it, block it.

Whatever takes something from an agent moves the club's gate first, which the agent's own transactions hold
(``policy.require_agent``): after it committed, nothing of that agent commits by the old rights.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from uuid import UUID

from sqlalchemy import insert, select, update

from lastcall.access.agents.tables import Agent
from lastcall.access.tables import JoinRequest
from lastcall.clubs.activity import System, log
from lastcall.db.bus import Hint
from lastcall.db.clock import NOW
from lastcall.db.ids import new_id
from lastcall.db.transaction import Transaction
from lastcall.names import valid_name
from lastcall.people.actor import Actor
from lastcall.people.agent_grants import AgentGrant

AGENT_NAME_LENGTH = 120  # characters, as in the request that it came by
CLAIM_LIFE = timedelta(days=7)
TOPIC = "agents"  # of the hints for live pages


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
    grants. A name that is taken gets a number. This is no fact of the candidate rule and no signal (ACC-11).
    """
    agent_id = new_id()
    mine = (JoinRequest.club_id == club_id, JoinRequest.id == request_id)
    asked = (
        await tx.execute(select(JoinRequest.agent_name, JoinRequest.agent_description).where(*mine))
    ).one()
    name = await _free_name(tx, club_id, valid_name(asked.agent_name, most=AGENT_NAME_LENGTH))
    await tx.execute(
        insert(Agent).values(
            club_id=club_id,
            id=agent_id,
            name=name,
            description=asked.agent_description,
            grants=sorted(set(grants)),
            responsible_id=responsible_id,
        )
    )
    await tx.execute(
        update(JoinRequest).where(*mine).values(agent_id=agent_id, claim_expires_at=NOW + CLAIM_LIFE)
    )
    details = {"name": name, "grants": sorted(set(grants)), "request": str(request_id)}
    await log(tx, club_id, by, "agent.created", "agent", agent_id, details)
    tx.publish(Hint(club_id, TOPIC))
    return agent_id


async def _free_name(tx: Transaction, club_id: UUID, name: str) -> str:
    """The name, or the name with the first number that nobody has."""
    rows = await tx.execute(select(Agent.name).where(Agent.club_id == club_id))
    taken = {row.name.lower() for row in rows.all()}
    free, number = name, 1
    while free.lower() in taken:
        number += 1
        ending = f" {number}"
        free = name[: AGENT_NAME_LENGTH - len(ending)].rstrip() + ending
    return free
