"""What an agent calls: to be let in and to claim its key, which need none, and with its own key all else."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from litestar import get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody
from msgspec import Meta

from lastcall.access.acceptance import accept_invite_as_agent
from lastcall.access.agents.claims import claim_key
from lastcall.access.agents.policy import AS_READER, require_agent
from lastcall.access.agents.queries import OwnView, own_view
from lastcall.access.limits import AGENT_CLAIMS, AGENT_JOINS
from lastcall.access.requests import AgentSubject, RequestStatus
from lastcall.api.client import client_address
from lastcall.api.v1.answers import answers
from lastcall.api.v1.event_shapes import EventPage, event_shape
from lastcall.api.v1.paging import CURSOR, After, Limit
from lastcall.api.v1.requests import FOR_AGENTS, PUBLIC, ApiRequest
from lastcall.api.v1.routes.spending import cents
from lastcall.api.v1.shapes import Id, Input, Shape, known_in
from lastcall.db.cursor import read_cursor
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.db.limits import source_of, take
from lastcall.events import queries as events
from lastcall.people.actor import AgentActor
from lastcall.people.agent_grants import AgentGrant
from lastcall.spending.budgets import Period
from lastcall.spending.queries import BudgetView, own_budgets

TAGS = ["For agents"]
Secret = Annotated[str, Meta(min_length=1, max_length=100)]


class OwnBudget(Shape, frozen=True):
    """What you may cost in a calendar month (by UTC) or ever, in cents, and what of it is spent. `hardStop`: you are
    paused when it is used up.
    """

    period: Period
    cents: str
    spent: str
    hard_stop: bool


class OwnAgent(Shape, frozen=True):
    """The agent whose key this is. `pauseReason` is `manual`, `budget` or `club`; null while it may work.
    `keyExpiresAt` is set once a newer key replaced this one. `budgets` are its own; its club may have others.
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
    budgets: list[OwnBudget]


class AgentJoin(Input, frozen=True):
    """The token of an invite, what stands behind `/invites/` in its address, and how the agent is to be known. With the
    `claimSecret` of an earlier answer it is that request again: it says that the agent still waits.
    """

    token: Secret
    name: Annotated[str, Meta(min_length=1, max_length=200)]
    description: Annotated[str, Meta(max_length=1000)] | None = None
    claim_secret: Secret | None = None


class AgentJoined(Shape, frozen=True):
    """A request that waits for the club's staff. Keep `claimSecret`: it is shown this once (null for a request that was
    made before), and good for one key within seven days of the approval.
    """

    club_id: Id
    join_request_id: Id
    status: RequestStatus
    claim_secret: str | None


class AgentClaim(Input, frozen=True):
    """What the agent was answered when it asked to be let in."""

    club_id: Id
    join_request_id: Id
    claim_secret: Secret


class AgentKeyMade(Shape, frozen=True):
    """The agent's key, shown this once: it goes along with each later call, as `Authorization: Bearer lca_…`."""

    agent_id: Id
    key: str


@get("/agent", tags=TAGS, opt=FOR_AGENTS, responses=answers())
async def who_am_i(db: NamedDependency[Database], agent: NamedDependency[AgentActor]) -> OwnAgent:
    """Which agent this key is of, in which club, and what it may do there."""
    async with db.read() as tx:
        return _own(await own_view(tx, agent), await own_budgets(tx, agent))


@post("/agent/join", status_code=202, tags=TAGS, opt=PUBLIC, security=[{}], responses=answers(404, body=True))
async def join_as_agent(
    request: ApiRequest, db: NamedDependency[Database], data: JSONBody[AgentJoin]
) -> AgentJoined:
    """Ask to be let into the club that an invite is of. Staff always decide."""
    await take(db, AGENT_JOINS, source_of(client_address(request)))
    subject = AgentSubject(data.name, data.description)
    made = await accept_invite_as_agent(db, data.token, subject, claim_secret=data.claim_secret)
    return AgentJoined(
        club_id=encode_id(made.club_id),
        join_request_id=encode_id(made.request_id),
        status=made.status,
        claim_secret=made.claim_secret,
    )


@post(
    "/agent/claim",
    status_code=200,
    tags=TAGS,
    opt=PUBLIC,
    security=[{}],
    responses=answers(404, 409, body=True),
)
async def claim_agent_key(
    request: ApiRequest, db: NamedDependency[Database], data: JSONBody[AgentClaim]
) -> AgentKeyMade:
    """Claim the key of an approved request, once. Answered with 409 (`request_pending`) until somebody decided."""
    await take(db, AGENT_CLAIMS, source_of(client_address(request)))
    made = await claim_key(
        db,
        known_in(data.club_id, "club_id"),
        known_in(data.join_request_id, "join_request_id"),
        data.claim_secret,
    )
    return AgentKeyMade(agent_id=encode_id(made.agent_id), key=made.key)


@get("/agent/events", tags=TAGS, opt=FOR_AGENTS, responses=answers(409))
async def list_published_events(
    db: NamedDependency[Database],
    agent: NamedDependency[AgentActor],
    limit: Limit = 50,
    cursor: After = None,
) -> EventPage:
    """The club's published events that are not over, the next first; needs `read_events`. A page has at most 50."""
    after = read_cursor(events.UPCOMING, cursor, field=CURSOR)
    async with db.read() as tx:
        await require_agent(tx, agent, AgentGrant.READ_EVENTS)
        page = await events.upcoming_events(tx, AS_READER, agent.club_id, after, limit)
    return EventPage(items=[event_shape(one) for one in page.events], next=page.next)


def _own(view: OwnView, budgets: tuple[BudgetView, ...]) -> OwnAgent:
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
        budgets=[
            OwnBudget(
                period=Period(one.period),
                cents=cents(one.amount),
                spent=cents(one.spent),
                hard_stop=one.hard_stop,
            )
            for one in budgets
        ],
    )


HANDLERS = (who_am_i, join_as_agent, claim_agent_key, list_published_events)
