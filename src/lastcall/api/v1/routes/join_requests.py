"""Join requests of a club: who asks to be let in, and the decisions."""

from __future__ import annotations

from datetime import datetime

from litestar import get, post
from litestar.di import NamedDependency
from litestar.params import FromQuery, JSONBody

from lastcall.access.deciding import approve_join_request, reject_join_request, withdraw_join_request
from lastcall.access.request_queries import JoinRequestView, join_requests_page
from lastcall.access.requests import RequestStatus
from lastcall.api.v1.answers import answers
from lastcall.api.v1.paging import CURSOR, After, Limit
from lastcall.api.v1.shapes import Id, Input, PathId, Shape, known, spelled
from lastcall.db.cursor import read_cursor, write_cursor
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.people.actor import Actor

TAGS = ["Join requests"]
_LISTING = "join-requests"


class JoinRequest(Shape, frozen=True):
    """Somebody who asks to be let in: a person (`personId`, `email`, or both) or an agent (`agentName`)."""

    id: Id
    invite_id: Id
    subject_kind: str
    person_id: str | None
    name: str | None
    email: str | None
    agent_name: str | None
    roles: list[str]
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


@post(
    "/clubs/{club:str}/join-requests/{join_request_id:str}/approve",
    status_code=204,
    tags=TAGS,
    responses=answers(404, 409, body=True),
)
async def approve_request(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    join_request_id: PathId,
    data: JSONBody[Decision],
) -> None:
    """Let the person in, with the roles of their invite."""
    await approve_join_request(db, actor, known(club), known(join_request_id), note=data.note)


@post(
    "/clubs/{club:str}/join-requests/{join_request_id:str}/reject",
    status_code=204,
    tags=TAGS,
    responses=answers(404, 409, body=True),
)
async def reject_request(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    join_request_id: PathId,
    data: JSONBody[Decision],
) -> None:
    """Turn whoever asks down."""
    await reject_join_request(db, actor, known(club), known(join_request_id), note=data.note)


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


def _join_request(view: JoinRequestView) -> JoinRequest:
    return JoinRequest(
        id=encode_id(view.id),
        invite_id=encode_id(view.invite_id),
        subject_kind=view.subject_kind,
        person_id=spelled(view.person_id),
        name=view.name,
        email=view.email,
        agent_name=view.agent_name,
        roles=list(view.roles),
        status=view.status,
        activity_at=view.activity_at,
        decided_at=view.decided_at,
        decision_note=view.decision_note,
        created_at=view.created_at,
    )


HANDLERS = (list_join_requests, approve_request, reject_request, withdraw_request)
