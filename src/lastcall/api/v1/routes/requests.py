"""Requests: queueing reviewed payloads, how far they are, stopping what is left of them, and what a new one would be
like.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Annotated, Any

import msgspec
from litestar import get, post
from litestar.di import NamedDependency
from litestar.params import FromQuery, JSONBody, QueryParameter
from msgspec import Meta

from lastcall.api.v1.answers import answers
from lastcall.api.v1.routes.operations import Operation, operation_shape
from lastcall.api.v1.schedules import AtOnce, When, schedule_of
from lastcall.api.v1.shapes import Id, Input, PathId, Shape, known, utc
from lastcall.clubs.policy import require_staff
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.operations.forecast import Forecast, forecast
from lastcall.operations.kinds import kind_named
from lastcall.operations.queries import request_operations
from lastcall.operations.services.asked import MOST_PAYLOADS
from lastcall.operations.services.basis import connection_missing
from lastcall.operations.services.cancel import cancel_request
from lastcall.operations.services.enqueue import Enqueued, enqueue
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope

TAGS = ["Operations"]


class OperationRequest(Shape, frozen=True):
    """A request with every operation it made, in the order of its payloads. `counts` says how many stand in which
    state; `settled` are over.
    """

    id: Id
    counts: dict[str, int]
    settled: int
    operations: list[Operation]


class NewRequest(Input, frozen=True):
    """One to a hundred payloads of one kind. Each names its `kind` beside the fields of that kind, such as
    `{"kind": "assign_role", "targetUserId": "usr_…", "roleId": "grol_…"}`.

    `requestId` is yours to choose, once for each thing to queue: the same request again is answered with what
    it made the first time. `confirmBanned`: people whom you choose although VRChat names them as banned.
    """

    request_id: Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{8,100}$")]
    payloads: Annotated[list[dict[str, Any]], Meta(min_length=1, max_length=MOST_PAYLOADS)]
    schedule: When = AtOnce()
    confirm_banned: Annotated[list[str], Meta(max_length=MOST_PAYLOADS)] = msgspec.field(default_factory=list)


class QueuedRequest(Shape, frozen=True):
    """What was queued; `isReplay` when this request had been made before."""

    id: Id
    operation_ids: list[Id]
    due_at: datetime
    is_replay: bool


class RequestCancelled(Shape, frozen=True):
    """How many operations were cancelled just now, and how many are `left`: sent, their outcome not known yet."""

    id: Id
    cancelled: int
    left: int


class RequestForecast(Shape, frozen=True):
    """When each target would go out, by the allowance of `perMinute` requests to VRChat and what is queued now. It
    reserves nothing. `inTime` go out within the 15 minutes of grace, the rest is `missed`; no `times`: an action costs
    more than the allowance ever gives.

    `writesLeft`: what the club's VRChat account may still write on the day of `dueAt` (UTC), over all its clubs.

    Where something is missed: `earlierStart` is the latest earlier time at which all would be in time, `spread` the
    same as several requests that are.
    """

    per_minute: int
    due_at: datetime
    times: list[datetime]
    in_time: int
    missed: int
    earlier_start: datetime | None
    spread: list[ForecastPart]
    writes_left: int | None


class ForecastPart(Shape, frozen=True):
    """So many of the targets, in a request of their own at that time."""

    due_at: datetime
    count: int


@get("/clubs/{club:str}/requests/{request_id:str}", tags=TAGS, responses=answers(404))
async def show_request(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, request_id: PathId
) -> OperationRequest:
    """One request with all of its operations."""
    club_id = known(club)
    async with db.read() as tx:
        standing = await require_staff(tx, actor, club_id, scope=Scope.READ)
        rows = await request_operations(tx, standing, actor, club_id, known(request_id))
    return OperationRequest(
        id=encode_id(rows[0].request_id),
        counts=dict(Counter(row.state.value for row in rows)),
        settled=sum(row.state.is_terminal for row in rows),
        operations=[operation_shape(row) for row in rows],
    )


@post("/clubs/{club:str}/requests", tags=TAGS, responses=answers(404, 409, body=True))
async def enqueue_request(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, data: JSONBody[NewRequest]
) -> QueuedRequest:
    """Queue reviewed payloads, all or none, under your authority. Whoever takes it away before they are sent
    stops them.
    """
    return queued_shape(
        await enqueue(
            db,
            actor,
            known(club),
            data.request_id,
            data.payloads,
            schedule_of(data.schedule),
            confirm_banned=data.confirm_banned,
        )
    )


@post(
    "/clubs/{club:str}/requests/{request_id:str}/cancel",
    status_code=200,
    tags=TAGS,
    responses=answers(404, 409),
)
async def cancel_whole_request(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, request_id: PathId
) -> RequestCancelled:
    """Stop everything of a request that is not sent yet, whatever its revision. A second time changes nothing."""
    done = await cancel_request(db, actor, known(club), known(request_id))
    return RequestCancelled(id=encode_id(done.request_id), cancelled=done.cancelled, left=done.left)


@get("/clubs/{club:str}/forecast", tags=TAGS, responses=answers(404, 409))
async def show_forecast(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    kind: FromQuery[str],
    count: Annotated[int, QueryParameter(ge=1, le=MOST_PAYLOADS, description="How many targets.")] = 1,
    due_at: Annotated[
        datetime | None, QueryParameter(name="dueAt", description="With its zone; now without it.")
    ] = None,
) -> RequestForecast:
    """When the targets of a request like this would be sent."""
    club_id, at = known(club), None if due_at is None else utc(due_at, "dueAt")
    async with db.read() as tx:
        standing = await require_staff(tx, actor, club_id, scope=Scope.READ)
        found = await forecast(tx, standing, club_id, kind_named(kind), count, at)
    if found is None:
        raise connection_missing()
    return forecast_shape(found)


def queued_shape(queued: Enqueued) -> QueuedRequest:
    return QueuedRequest(
        id=encode_id(queued.request_id),
        operation_ids=[encode_id(each) for each in queued.operation_ids],
        due_at=queued.due_at,
        is_replay=queued.is_replay,
    )


def forecast_shape(found: Forecast) -> RequestForecast:
    return RequestForecast(
        per_minute=found.per_minute,
        due_at=found.due_at,
        times=list(found.times),
        in_time=found.in_time,
        missed=found.missed,
        earlier_start=found.earlier_start,
        spread=[ForecastPart(due_at=part.due_at, count=part.count) for part in found.spread],
        writes_left=found.writes_left,
    )


HANDLERS = (show_request, enqueue_request, cancel_whole_request, show_forecast)
