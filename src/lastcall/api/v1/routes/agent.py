"""What an agent calls with its own key."""

from __future__ import annotations

from datetime import datetime

from litestar import get
from litestar.di import NamedDependency

from lastcall.access.agents.queries import OwnView, own_view
from lastcall.api.v1.answers import answers
from lastcall.api.v1.requests import FOR_AGENTS
from lastcall.api.v1.shapes import Id, Shape
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.people.actor import AgentActor
from lastcall.people.agent_grants import AgentGrant

TAGS = ["For agents"]


class OwnAgent(Shape, frozen=True):
    """The agent whose key this is. `pauseReason` is `manual`, `budget` or `club`; null while it may work.
    `keyExpiresAt` is set once a newer key replaced this one.
    """

    id: Id
    name: str
    description: str | None
    club_id: Id
    club: str
    slug: str
    grants: list[AgentGrant]
    pause_reason: str | None
    key_expires_at: datetime | None


@get("/agent", tags=TAGS, opt=FOR_AGENTS, responses=answers())
async def who_am_i(db: NamedDependency[Database], agent: NamedDependency[AgentActor]) -> OwnAgent:
    """Which agent this key is of, in which club, and what it may do there."""
    async with db.read() as tx:
        return _own(await own_view(tx, agent))


def _own(view: OwnView) -> OwnAgent:
    return OwnAgent(
        id=encode_id(view.id),
        name=view.name,
        description=view.description,
        club_id=encode_id(view.club_id),
        club=view.club_name,
        slug=view.club_slug,
        grants=list(view.grants),
        pause_reason=view.pause_reason,
        key_expires_at=view.key_expires_at,
    )


HANDLERS = (who_am_i,)
