"""Join requests of a club: who asks to be let in, and the decisions."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from litestar import delete, get, post
from litestar.di import NamedDependency
from litestar.params import FromQuery, JSONBody
from msgspec import Meta

from lastcall.access.deciding import (
    MOST_AT_ONCE,
    Outcome,
    Verdict,
    approve_join_request,
    decide_many,
    delete_join_request,
    reject_join_request,
    withdraw_join_request,
)
from lastcall.access.request_queries import (
    JoinRequestView,
    join_request,
    join_request_in,
    join_requests_page,
    own_requests,
)
from lastcall.access.requests import RequestStatus
from lastcall.api.v1.answers import answers
from lastcall.api.v1.paging import CURSOR, After, Limit
from lastcall.api.v1.shapes import Id, Input, PathId, Shape, known, known_in, spelled
from lastcall.db.cursor import cut, read_cursor, write_cursor
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.mail.mailer import Mailer
from lastcall.people.actor import Actor
from lastcall.people.agent_grants import AgentGrant

TAGS = ["Join requests"]
_LISTING = "join-requests"
_OWN_LISTING = "own-join-requests"


class JoinRequest(Shape, frozen=True):
    """Somebody who asks to be let in: a person (`personId`, `email`, or both) or an agent (`agentName`)."""

    id: Id
    invite_id: Id
    subject_kind: str
    person_id: str | None
    name: str | None
    email: str | None
    agent_name: str | None
    agent_description: str | None
    roles: list[str]
    agent_grants: list[AgentGrant]
    status: RequestStatus
    activity_at: datetime
    decided_at: datetime | None
    decision_note: str | None
    created_at: datetime


class JoinRequestPage(Shape, frozen=True):
    """`next` is the cursor of the next page; null at the end. A page of a filtered list may be short, even empty,
    and yet have a next one.
    """

    items: list[JoinRequest]
    next: str | None


class Decision(Input, frozen=True):
    """`note` is for whoever asked."""

    note: str | None = None


class Approval(Input, frozen=True):
    """`note` is for whoever asked. `agentGrants`, for an agent: what it may do, among what its invite offers; all of
    that when it is left out.
    """

    note: str | None = None
    agent_grants: list[AgentGrant] | None = None


class ManyDecisions(Input, frozen=True):
    """The same decision on up to a hundred requests, each by itself. `note` is for whoever asked."""

    verdict: Verdict
    ids: Annotated[list[Id], Meta(min_length=1, max_length=MOST_AT_ONCE)]
    note: str | None = None


class DecisionRefusal(Shape, frozen=True):
    """Why a request was not decided."""

    code: str
    title: str
    advice: str | None


class DecisionOutcome(Shape, frozen=True):
    """What became of one request: decided, where `refusal` is null."""

    id: Id
    refusal: DecisionRefusal | None


class DecisionOutcomes(Shape, frozen=True):
    """One outcome a request, in the order in which they were sent."""

    items: list[DecisionOutcome]


class OwnJoinRequest(Shape, frozen=True):
    """A join request of your own. `decisionNote` is what the club said about it."""

    id: Id
    club_id: Id
    club_name: str
    roles: list[str]
    status: RequestStatus
    created_at: datetime
    decided_at: datetime | None
    decision_note: str | None


class OwnJoinRequestPage(Shape, frozen=True):
    """`next` is the cursor of the next page; null at the end."""

    items: list[OwnJoinRequest]
    next: str | None


@get("/clubs/{club:str}/join-requests", tags=TAGS, responses=answers(404))
async def list_join_requests(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    limit: Limit = 50,
    cursor: After = None,
    status: FromQuery[RequestStatus | None] = None,
) -> JoinRequestPage:
    """Who asks to be let in, the newest first. Whoever may not decide does not see that there is anything."""
    async with db.read() as tx:
        page = await join_requests_page(
            tx,
            actor,
            known(club),
            status=status,
            after=read_cursor(_LISTING, cursor, field=CURSOR),
            limit=limit,
        )
    return JoinRequestPage(
        items=[_join_request(view) for view in page.requests],
        next=None if page.next is None else write_cursor(_LISTING, page.next),
    )


@get("/clubs/{club:str}/join-requests/{join_request_id:str}", tags=TAGS, responses=answers(404))
async def show_join_request(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, join_request_id: PathId
) -> JoinRequest:
    """One request, waiting or decided."""
    async with db.read() as tx:
        return _join_request(await join_request(tx, actor, known(club), known(join_request_id)))


@post(
    "/clubs/{club:str}/join-requests/decide",
    status_code=200,
    tags=TAGS,
    responses=answers(404, body=True),
)
async def decide_requests(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    mailer: NamedDependency[Mailer],
    club: PathId,
    data: JSONBody[ManyDecisions],
) -> DecisionOutcomes:
    """Decide many requests alike. One that cannot be decided stays as it is and says why; the others are decided."""
    return await decided(db, actor, club, data, mailer=mailer)


@post(
    "/clubs/{club:str}/join-requests/{join_request_id:str}/approve",
    status_code=204,
    tags=TAGS,
    responses=answers(404, 409, body=True),
)
async def approve_request(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    mailer: NamedDependency[Mailer],
    club: PathId,
    join_request_id: PathId,
    data: JSONBody[Approval],
) -> None:
    """Let a person in, with the roles of their invite, or an agent, which can claim its key from then on."""
    await approve_join_request(
        db,
        actor,
        known(club),
        known(join_request_id),
        note=data.note,
        agent_grants=data.agent_grants,
        mailer=mailer,
    )


@post(
    "/clubs/{club:str}/join-requests/{join_request_id:str}/reject",
    status_code=204,
    tags=TAGS,
    responses=answers(404, 409, body=True),
)
async def reject_request(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    mailer: NamedDependency[Mailer],
    club: PathId,
    join_request_id: PathId,
    data: JSONBody[Decision],
) -> None:
    """Turn whoever asks down."""
    await reject_join_request(db, actor, known(club), known(join_request_id), note=data.note, mailer=mailer)


@post(
    "/clubs/{club:str}/join-requests/{join_request_id:str}/withdraw",
    status_code=204,
    tags=TAGS,
    responses=answers(404, 409),
)
async def withdraw_request(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, join_request_id: PathId
) -> None:
    """Take your own waiting request back."""
    await withdraw_join_request(db, actor, known(club), known(join_request_id))


@delete("/clubs/{club:str}/join-requests/{join_request_id:str}", tags=TAGS, responses=answers(404, 409))
async def delete_request(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, join_request_id: PathId
) -> None:
    """Delete a request for good. One that was approved stays, as the record of who let somebody in."""
    await delete_join_request(db, actor, known(club), known(join_request_id))


@get("/me/join-requests", tags=TAGS, responses=answers())
async def list_own_requests(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    limit: Limit = 50,
    cursor: After = None,
) -> OwnJoinRequestPage:
    """Where you asked to join, over all clubs, the newest first."""
    after = read_cursor(_OWN_LISTING, cursor, field=CURSOR)
    async with db.read() as tx:
        found = await own_requests(tx, actor, after=after, limit=limit + 1)
    shown, older = cut(found, limit, _OWN_LISTING, lambda one: one.cursor)
    return OwnJoinRequestPage(
        items=[
            OwnJoinRequest(
                id=encode_id(one.id),
                club_id=encode_id(one.club_id),
                club_name=one.club_name,
                roles=list(one.roles),
                status=one.status,
                created_at=one.asked_at,
                decided_at=one.decided_at,
                decision_note=one.decision_note,
            )
            for one in shown
        ],
        next=older,
    )


async def decided(
    db: Database, actor: Actor, club: str, data: ManyDecisions, *, mailer: Mailer | None
) -> DecisionOutcomes:
    """The decisions, as API and MCP make them."""
    ids = [known_in(each, "ids") for each in data.ids]
    outcomes = await decide_many(db, actor, known(club), data.verdict, ids, note=data.note, mailer=mailer)
    return DecisionOutcomes(items=[_outcome(one) for one in outcomes])


async def let_in(
    db: Database,
    actor: Actor,
    club: str,
    request_id: str,
    *,
    note: str | None,
    agent_grants: list[AgentGrant] | None,
) -> JoinRequest:
    """Approve, and answer the request as it is then."""
    club_id, wanted = known(club), known(request_id)
    await approve_join_request(db, actor, club_id, wanted, note=note, agent_grants=agent_grants)
    async with db.read() as tx:
        return _join_request(await join_request_in(tx, club_id, wanted))


def _outcome(one: Outcome) -> DecisionOutcome:
    problem = one.problem
    return DecisionOutcome(
        id=encode_id(one.request_id),
        refusal=None
        if problem is None
        else DecisionRefusal(code=problem.code, title=problem.sentence, advice=problem.advice),
    )


def _join_request(view: JoinRequestView) -> JoinRequest:
    return JoinRequest(
        id=encode_id(view.id),
        invite_id=encode_id(view.invite_id),
        subject_kind=view.subject_kind,
        person_id=spelled(view.person_id),
        name=view.name,
        email=view.email,
        agent_name=view.agent_name,
        agent_description=view.agent_description,
        agent_grants=list(view.agent_grants),
        roles=list(view.roles),
        status=view.status,
        activity_at=view.activity_at,
        decided_at=view.decided_at,
        decision_note=view.decision_note,
        created_at=view.created_at,
    )


HANDLERS = (
    list_join_requests,
    show_join_request,
    decide_requests,
    approve_request,
    reject_request,
    withdraw_request,
    delete_request,
    list_own_requests,
)
