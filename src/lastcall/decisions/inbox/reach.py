"""What a reader may see: which clubs, and which sources in each."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import text

from lastcall.access.agents.policy import require_agent
from lastcall.clubs.permissions import ALL_PERMISSIONS, Permission
from lastcall.clubs.policy import Standing, require_staff
from lastcall.clubs.queries import clubs_of
from lastcall.db.transaction import Reader
from lastcall.decisions.inbox.source import Source
from lastcall.people.actor import Actor, AgentActor
from lastcall.people.agent_grants import AgentGrant
from lastcall.people.scopes import Scope


@dataclass(frozen=True)
class Reach:
    """``held`` is, by club, what the reader holds there. ``person_id`` is null for an agent, who sees what agents
    may and puts nothing away."""

    held: dict[UUID, frozenset[Permission]]
    person_id: UUID | None

    def clubs_for(self, source: Source) -> list[UUID]:
        """The clubs in which the reader sees this source."""
        if self.person_id is None:
            return list(self.held) if source.agents_read is not None else []
        needed = source.permission
        return [club for club, held in self.held.items() if needed is None or needed in held]

    def holds(self, club_id: UUID, permission: Permission) -> bool:
        """Whether the reader holds this permission in that club."""
        return permission in self.held[club_id]


def reach_of(actor: Actor, club_id: UUID, standing: Standing) -> Reach:
    """In one club, by a standing that was just read."""
    return Reach({club_id: standing.permissions}, actor.person_id)


async def reach_in(tx: Reader, actor: Actor, club_id: UUID) -> Reach:
    """In one club. Raises ``NotFound`` off its staff."""
    return reach_of(actor, club_id, await require_staff(tx, actor, club_id, scope=Scope.READ))


# A club that is being deleted has no standing.
_STANDINGS = text("""
    select c.club_id, bool_or(f.is_owner) as is_owner,
           array(select distinct unnest(array_agg(p.name))) as permissions
      from unnest(cast(:clubs as uuid[])) as c (club_id)
     cross join lateral club_standing(c.club_id, :person) f
      left join lateral unnest(f.permissions) as p (name) on true
     group by c.club_id
""")


async def reach_everywhere(tx: Reader, actor: Actor) -> Reach:
    """In every club the actor owns or works for; two statements, however many they are."""
    clubs = [club.id for club in await clubs_of(tx, actor)]
    rows = await tx.execute(_STANDINGS, {"clubs": clubs, "person": actor.person_id})
    return Reach({row.club_id: _held(row.is_owner, row.permissions) for row in rows.all()}, actor.person_id)


def _held(is_owner: bool, stored: Collection[str | None]) -> frozenset[Permission]:
    return ALL_PERMISSIONS if is_owner else frozenset(one for one in Permission if one in stored)


async def reach_of_agent(tx: Reader, agent: AgentActor) -> Reach:
    """An agent's own club, with the grant ``read_inbox``."""
    await require_agent(tx, agent, AgentGrant.READ_INBOX)
    return Reach({agent.club_id: frozenset()}, None)
