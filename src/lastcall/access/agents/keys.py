"""Keys of agents: shown once, stored as a hash, replaced by generation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from sqlalchemy import func, insert, select, update

from lastcall.access.agents.policy import LIVE_KEY
from lastcall.access.agents.tables import AgentKey
from lastcall.db.clock import NOW
from lastcall.db.database import Database
from lastcall.db.ids import new_id
from lastcall.db.tables import Directory
from lastcall.db.transaction import Transaction
from lastcall.people.actor import AgentActor
from lastcall.people.agent_grants import AgentGrant
from lastcall.people.tokens import new_token, token_hash

PREFIX = "lca_"  # by which a secret scanner, and our own door, knows a key of an agent
HINT_LENGTH = 8  # characters of a key that stay visible
KEY_DIRECTORY = "agent_key"
OVERLAP = timedelta(hours=24)
"""How long an older key is good beside the one that replaced it, so that a running program can be changed over."""
USED_EVERY = timedelta(minutes=5)
"""How fine it is known when a key was last used: a row is not written at every call."""

_ACTOR = """
    select a.club_id, a.id, a.name, a.grants, k.id as key_id,
           coalesce(k.last_used_at, '-infinity') < (select lastcall_now()) - $3::interval as is_stale
    from directory d
    join agent_keys k on k.club_id = d.club_id and k.key_hash = $2
    join agents a on a.club_id = k.club_id and a.id = k.agent_id
    join clubs c on c.id = a.club_id
    where d.kind = 'agent_key' and d.key = $1
      and k.revoked_at is null
      and (k.expires_at is null or k.expires_at > (select lastcall_now()))
      and a.status <> 'blocked'
      and c.state in ('active', 'paused')
"""
_USED = """
    with used as (
        update agent_keys set last_used_at = (select lastcall_now())
        where club_id = $1 and id = $2
          and coalesce(last_used_at, '-infinity') < (select lastcall_now()) - $3::interval
        returning agent_id
    )
    update agents set last_seen_at = (select lastcall_now()) from used where club_id = $1 and id = used.agent_id
"""


@dataclass(frozen=True)
class NewKey:
    """A key as it is shown this once. ``generation`` counts an agent's keys from 1."""

    agent_id: UUID
    key_id: UUID
    generation: int
    key: str


async def actor_of_key(db: Database, key: str) -> AgentActor | None:
    """Which agent this key acts for, or nobody: unknown, replaced, revoked, of a blocked agent and of a club that is
    archived or going are alike. One statement. A paused agent is told who it is; ``require_agent`` stops it.
    """
    hashed = token_hash(key)
    row = await db.pool.fetchrow(_ACTOR, hashed.hex(), hashed, USED_EVERY)
    if row is None:
        return None
    if row["is_stale"]:
        await db.pool.execute(_USED, row["club_id"], row["key_id"], USED_EVERY)
    # A grant that this version does not know allows nothing.
    grants = frozenset(grant for grant in AgentGrant if grant in row["grants"])
    return AgentActor(row["id"], row["club_id"], row["name"], row["key_id"], grants)


async def make_key(tx: Transaction, club_id: UUID, agent_id: UUID) -> NewKey:
    """The agent's next key, in the caller's transaction, which holds the agent's row."""
    key, key_id = PREFIX + new_token(), new_id()
    hashed = token_hash(key)
    mine = (AgentKey.club_id == club_id, AgentKey.agent_id == agent_id)
    generation: int = 1 + await tx.scalar(
        select(func.coalesce(func.max(AgentKey.generation), 0)).where(*mine)
    )
    await tx.execute(insert(Directory).values(kind=KEY_DIRECTORY, key=hashed.hex(), club_id=club_id))
    await tx.execute(
        insert(AgentKey).values(
            club_id=club_id,
            id=key_id,
            agent_id=agent_id,
            generation=generation,
            key_hash=hashed,
            hint=key[:HINT_LENGTH],
        )
    )
    return NewKey(agent_id, key_id, generation, key)


async def end_keys_in(
    tx: Transaction, club_id: UUID, agent_id: UUID, *, after: timedelta | None = None
) -> int:
    """End the agent's live keys, at once or ``after`` that long (never later than they would), in the transaction of
    a caller who moved the club's gate; answers how many they were.
    """
    ends = (
        {"revoked_at": NOW} if after is None else {"expires_at": func.least(AgentKey.expires_at, NOW + after)}
    )
    ended = await tx.execute(
        update(AgentKey)
        .where(AgentKey.club_id == club_id, AgentKey.agent_id == agent_id, *LIVE_KEY)
        .values(**ends)
        .returning(AgentKey.id)
    )
    return len(ended.all())
