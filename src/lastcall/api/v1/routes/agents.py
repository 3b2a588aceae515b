"""Agents of a club, as its staff manage them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, cast

from litestar import delete, get, post, put
from litestar.di import NamedDependency
from litestar.params import JSONBody
from msgspec import Meta

from lastcall.access.agents import service
from lastcall.access.agents.queries import AgentView, KeyView, agents_of, keys_of, read_agent
from lastcall.access.agents.service import AgentFields
from lastcall.api.v1.answers import answers
from lastcall.api.v1.shapes import Id, Input, PathId, Shape, known, spelled, utc
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.people.actor import Actor
from lastcall.people.agent_grants import AgentGrant

TAGS = ["Agents"]
Status = Literal["active", "paused", "blocked"]
PauseReason = Literal["manual", "budget"]


class Agent(Shape, frozen=True):
    """An agent as those see it who manage agents. `responsible` is the name of the person who answers for it;
    `claimExpiresAt` is until when it may claim its first key, null once it has.
    """

    id: Id
    name: str
    description: str | None
    status: Status
    pause_reason: PauseReason | None
    grants: list[AgentGrant]
    responsible_id: Id
    responsible: str
    join_request_id: Id | None
    claim_expires_at: datetime | None
    last_seen_at: datetime | None
    created_at: datetime
    updated_at: datetime


class Agents(Shape, frozen=True):
    """By name. There is no further page."""

    items: list[Agent]


class AgentKey(Shape, frozen=True):
    """A key that is good; `hint` is how it begins. `expiresAt` is set once a newer one replaced it."""

    id: Id
    generation: int
    hint: str
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None


class AgentKeys(Shape, frozen=True):
    """The newest first. There is no further page."""

    items: list[AgentKey]


class AgentEdit(Input, frozen=True):
    """All that staff set of an agent, at once. `seen` is the `updatedAt` that it was read with."""

    name: str
    description: str | None
    grants: Annotated[list[AgentGrant], Meta(max_length=len(AgentGrant))]
    seen: datetime


class Rotate(Input, frozen=True):
    """The older keys are good for 24 hours more, or end at once."""

    ends_old_at_once: bool = False


class RotatedKey(Shape, frozen=True):
    """A new key, shown this once. Give it to whoever runs the agent."""

    id: Id
    generation: int
    key: str


class ClaimRenewed(Shape, frozen=True):
    """A new claim secret, shown this once, for the agent's call of `/agent/claim`."""

    claim_secret: str


class KeysEnded(Shape, frozen=True):
    """How many keys were good until now."""

    ended: int


@get("/clubs/{club:str}/agents", tags=TAGS, responses=answers(404))
async def list_agents(db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId) -> Agents:
    """The agents of a club; needs `manage_agents`."""
    async with db.read() as tx:
        return Agents(items=[agent_shape(one) for one in await agents_of(tx, actor, known(club))])


@get("/clubs/{club:str}/agents/{agent_id:str}", tags=TAGS, responses=answers(404))
async def show_agent(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, agent_id: PathId
) -> Agent:
    """One agent; needs `manage_agents`."""
    async with db.read() as tx:
        return agent_shape(await read_agent(tx, actor, known(club), known(agent_id)))


@put("/clubs/{club:str}/agents/{agent_id:str}", tags=TAGS, responses=answers(404, 409, body=True))
async def edit_one_agent(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    agent_id: PathId,
    data: JSONBody[AgentEdit],
) -> Agent:
    """Set an agent's name, description and grants. `read_inbox` is given by those who have `decide_access`."""
    fields = AgentFields(data.name, data.description, frozenset(data.grants))
    seen = utc(data.seen, "seen")
    return agent_shape(await service.edit_agent(db, actor, known(club), known(agent_id), fields, seen))


@post(
    "/clubs/{club:str}/agents/{agent_id:str}/pause", status_code=200, tags=TAGS, responses=answers(404, 409)
)
async def pause_one_agent(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, agent_id: PathId
) -> Agent:
    """Stop what the agent does until somebody resumes it. Its keys stay good."""
    return agent_shape(await service.pause_agent(db, actor, known(club), known(agent_id)))


@post(
    "/clubs/{club:str}/agents/{agent_id:str}/resume", status_code=200, tags=TAGS, responses=answers(404, 409)
)
async def resume_one_agent(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, agent_id: PathId
) -> Agent:
    """Let an agent go on that somebody paused. One that a budget paused goes on with the budget."""
    return agent_shape(await service.resume_agent(db, actor, known(club), known(agent_id)))


@post(
    "/clubs/{club:str}/agents/{agent_id:str}/block", status_code=200, tags=TAGS, responses=answers(404, 409)
)
async def block_one_agent(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, agent_id: PathId
) -> Agent:
    """Shut the agent out at once: none of its keys is good any more."""
    return agent_shape(await service.block_agent(db, actor, known(club), known(agent_id)))


@post(
    "/clubs/{club:str}/agents/{agent_id:str}/unblock", status_code=200, tags=TAGS, responses=answers(404, 409)
)
async def unblock_one_agent(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, agent_id: PathId
) -> Agent:
    """Let a blocked agent be one again. It has no key until somebody makes one."""
    return agent_shape(await service.unblock_agent(db, actor, known(club), known(agent_id)))


@post(
    "/clubs/{club:str}/agents/{agent_id:str}/responsible",
    status_code=200,
    tags=TAGS,
    responses=answers(404, 409),
)
async def answer_for_agent(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, agent_id: PathId
) -> Agent:
    """Answer for the agent from now on."""
    return agent_shape(await service.take_responsibility(db, actor, known(club), known(agent_id)))


@get("/clubs/{club:str}/agents/{agent_id:str}/keys", tags=TAGS, responses=answers(404))
async def list_agent_keys(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, agent_id: PathId
) -> AgentKeys:
    """The agent's keys that are good."""
    async with db.read() as tx:
        found = await keys_of(tx, actor, known(club), known(agent_id))
    return AgentKeys(items=[_key(one) for one in found])


@post("/clubs/{club:str}/agents/{agent_id:str}/keys", tags=TAGS, responses=answers(404, 409, body=True))
async def rotate_agent_key(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    agent_id: PathId,
    data: JSONBody[Rotate],
) -> RotatedKey:
    """Make the agent a new key. When the answer is lost, do it again."""
    made = await service.rotate_key(
        db, actor, known(club), known(agent_id), ends_old_at_once=data.ends_old_at_once
    )
    return RotatedKey(id=encode_id(made.key_id), generation=made.generation, key=made.key)


@delete(
    "/clubs/{club:str}/agents/{agent_id:str}/keys", status_code=200, tags=TAGS, responses=answers(404, 409)
)
async def revoke_agent_keys(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, agent_id: PathId
) -> KeysEnded:
    """End every key of the agent at once, and the claim secret if nobody used it."""
    return KeysEnded(ended=await service.revoke_keys(db, actor, known(club), known(agent_id)))


@post("/clubs/{club:str}/agents/{agent_id:str}/claim", tags=TAGS, responses=answers(404, 409))
async def renew_agent_claim(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, agent_id: PathId
) -> ClaimRenewed:
    """Make a new claim secret in place of one that nobody used. When the answer is lost, do it again."""
    return ClaimRenewed(claim_secret=await service.refresh_claim(db, actor, known(club), known(agent_id)))


def agent_shape(view: AgentView) -> Agent:
    return Agent(
        id=encode_id(view.id),
        name=view.name,
        description=view.description,
        status=cast("Status", view.status),
        pause_reason=cast("PauseReason | None", view.pause_reason),
        grants=list(view.grants),
        responsible_id=encode_id(view.responsible_id),
        responsible=view.responsible,
        join_request_id=spelled(view.request_id),
        claim_expires_at=view.claim_expires_at,
        last_seen_at=view.last_seen_at,
        created_at=view.created_at,
        updated_at=view.version,
    )


def _key(view: KeyView) -> AgentKey:
    return AgentKey(
        id=encode_id(view.id),
        generation=view.generation,
        hint=view.hint,
        created_at=view.created_at,
        expires_at=view.expires_at,
        last_used_at=view.last_used_at,
    )


HANDLERS = (
    list_agents,
    show_agent,
    edit_one_agent,
    pause_one_agent,
    resume_one_agent,
    block_one_agent,
    unblock_one_agent,
    answer_for_agent,
    list_agent_keys,
    rotate_agent_key,
    revoke_agent_keys,
    renew_agent_claim,
)
