"""Tools on a club's join requests: who waits, and the decisions. They see and decide what their person may."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from lastcall.access.deciding import MOST_AT_ONCE, NOTE_LENGTH, Verdict
from lastcall.access.requests import RequestStatus
from lastcall.api.mcp.tool import Club, PageCursor, PageSize, Tool
from lastcall.api.v1.routes.join_requests import (
    DecisionOutcomes,
    ManyDecisions,
    decided,
    let_in,
    list_join_requests,
)
from lastcall.api.v1.shapes import Id, Input, Shape
from lastcall.db.database import Database
from lastcall.people.actor import Actor
from lastcall.people.agent_grants import AgentGrant

RequestId = Annotated[Id, Meta(description="The id of the join request.")]
Note = Annotated[str, Meta(max_length=NOTE_LENGTH, description="What whoever asked is shown.")]


class ListRequests(Input, frozen=True):
    """Which join requests are wanted."""

    club: Club
    status: RequestStatus | None = RequestStatus.PENDING
    limit: PageSize = 20
    cursor: PageCursor | None = None


class Approve(Input, frozen=True):
    """Whom to let in."""

    club: Club
    request_id: RequestId
    note: Note | None = None
    agent_grants: (
        Annotated[
            list[AgentGrant],
            Meta(description="For an agent: what it may do, among what its invite offers; else all of that."),
        ]
        | None
    ) = None


class Reject(Input, frozen=True):
    """Whom to turn down."""

    club: Club
    request_ids: Annotated[list[RequestId], Meta(min_length=1, max_length=MOST_AT_ONCE)]
    note: Note | None = None


async def _list(db: Database, actor: Actor, asked: ListRequests) -> Shape:
    page: Shape = await list_join_requests.fn(
        db, actor, asked.club, limit=asked.limit, cursor=asked.cursor, status=asked.status
    )
    return page


async def _approve(db: Database, actor: Actor, asked: Approve) -> Shape:
    return await let_in(
        db, actor, asked.club, asked.request_id, note=asked.note, agent_grants=asked.agent_grants
    )


async def _reject(db: Database, actor: Actor, asked: Reject) -> DecisionOutcomes:
    many = ManyDecisions(verdict=Verdict.REJECT, ids=asked.request_ids, note=asked.note)
    return await decided(db, actor, asked.club, many, mailer=None)


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        name="list_join_requests",
        words="Who asks to be let onto the club's staff, people and agents, the newest first.",
        asked=ListRequests,
        run=_list,
        reads=True,
    ),
    Tool(
        name="approve_join_request",
        words="Let one person or agent in. Only where the person whose token you use decided it: ask them first.",
        asked=Approve,
        run=_approve,
        destroys=True,
    ),
    Tool(
        name="reject_join_requests",
        words="Turn people or agents down, each by itself. Only where the person whose token you use decided it.",
        asked=Reject,
        run=_reject,
        destroys=True,
    ),
)
