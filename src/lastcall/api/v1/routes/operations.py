"""Operations of a club: what is to come, what is over, and queueing and cancelling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any

from litestar import get, post
from litestar.di import NamedDependency
from litestar.params import FromQuery, JSONBody, QueryParameter
from msgspec import Meta

from lastcall.api.v1.answers import answers
from lastcall.api.v1.paging import CURSOR, After, Limit
from lastcall.api.v1.shapes import Id, Input, PathId, Shape, known, utc
from lastcall.clubs.policy import require_staff
from lastcall.db.cursor import Cursor, cut, read_cursor
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.operations.kinds import kind_named
from lastcall.operations.machine import State
from lastcall.operations.queries import Filter, history, operation, request_operations, upcoming
from lastcall.operations.schedules import Fixed, Immediate, Schedule
from lastcall.operations.services.asked import MOST_PAYLOADS
from lastcall.operations.services.cancel import cancel
from lastcall.operations.services.enqueue import enqueue
from lastcall.operations.views import OperationView
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope

TAGS = ["Operations"]
_UPCOMING, _HISTORY = "operations/upcoming", "operations/history"


class Operation(Shape, frozen=True):
    """One reviewed write for one target. `code` says why it stands as it does, `reason` and `advice` in words.

    `isCancellable`: this reader may cancel it as it stands, at this `revision`. `readyAt` is null while it waits for
    the action that it depends on.
    """

    id: Id
    request_id: Id
    request_size: int
    position: int
    kind: str
    payload: dict[str, Any]
    schedule_kind: str
    due_at: datetime
    ready_at: datetime | None
    state: State
    revision: int
    actor_id: Id
    actor_name: str
    code: str | None
    reason: str | None
    advice: str | None
    result: dict[str, Any] | None
    created_at: datetime
    submitted_at: datetime | None
    completed_at: datetime | None
    is_cancellable: bool
    late_outcome: str | None


class OperationPage(Shape, frozen=True):
    """`next` is the cursor of the next page; null at the end."""

    items: list[Operation]
    next: str | None


class OperationRequest(Shape, frozen=True):
    """A request with every operation it made, in the order of its payloads."""

    id: Id
    operations: list[Operation]


class AtOnce(Input, frozen=True, tag="immediate", tag_field="kind"):
    """As soon as it is sent."""


class AtTime(Input, frozen=True, tag="fixed", tag_field="kind"):
    """At that time, with its zone, at most 366 days ahead."""

    due_at: datetime


class NewRequest(Input, frozen=True):
    """One to a hundred payloads of one kind. Each names its `kind` beside the fields of that kind, such as
    `{"kind": "assign_role", "targetUserId": "usr_…", "roleId": "grol_…"}`.

    `requestId` is yours to choose, once for each thing to queue: the same request again is answered with what
    it made the first time.
    """

    request_id: Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{8,100}$")]
    payloads: Annotated[list[dict[str, Any]], Meta(min_length=1, max_length=MOST_PAYLOADS)]
    schedule: AtOnce | AtTime = AtOnce()


class QueuedRequest(Shape, frozen=True):
    """What was queued; `isReplay` when this request had been made before."""

    id: Id
    operation_ids: list[Id]
    due_at: datetime
    is_replay: bool


class Cancel(Input, frozen=True):
    """The revision that you saw: nothing is cancelled that was edited since."""

    revision: Annotated[int, Meta(ge=1, le=2**31 - 1)]


def operation_shape(view: OperationView) -> Operation:
    reason = view.reason
    return Operation(
        id=encode_id(view.id),
        request_id=encode_id(view.request_id),
        request_size=view.request_size,
        position=view.position,
        kind=view.kind.name,
        payload=view.payload,
        schedule_kind=view.schedule_kind,
        due_at=view.due_at,
        ready_at=view.ready_at,
        state=view.state,
        revision=view.revision,
        actor_id=encode_id(view.actor_id),
        actor_name=view.actor_name,
        code=view.code,
        reason=reason.label if reason else None,
        advice=reason.advice if reason else None,
        result=view.result,
        created_at=view.created_at,
        submitted_at=view.submitted_at,
        completed_at=view.completed_at,
        is_cancellable=view.is_cancellable,
        late_outcome=view.late_outcome,
    )


@get("/clubs/{club:str}/operations", tags=TAGS, responses=answers(404))
async def list_upcoming_operations(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    limit: Limit = 50,
    cursor: After = None,
    kind: FromQuery[str | None] = None,
) -> OperationPage:
    """What is not over, by due time: pending, claimed and submitted. Kinds that the reader has no permission
    for do not appear.
    """
    club_id, after = known(club), read_cursor(_UPCOMING, cursor, field=CURSOR)
    async with db.read() as tx:
        standing = await require_staff(tx, actor, club_id, scope=Scope.READ)
        rows = await upcoming(
            tx, standing, actor, club_id, Filter(kinds=_kinds(kind)), after=after, limit=limit + 1
        )
    return _page(rows, limit, _UPCOMING, lambda row: row.due_at)


@get("/clubs/{club:str}/operations/history", tags=TAGS, responses=answers(404))
async def list_past_operations(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    limit: Limit = 50,
    cursor: After = None,
    kind: FromQuery[str | None] = None,
    outcome: Annotated[State | None, QueryParameter(name="state")] = None,
) -> OperationPage:
    """What is over, the newest end first."""
    club_id, after = known(club), read_cursor(_HISTORY, cursor, field=CURSOR)
    async with db.read() as tx:
        standing = await require_staff(tx, actor, club_id, scope=Scope.READ)
        rows = await history(
            tx,
            standing,
            actor,
            club_id,
            Filter(kinds=_kinds(kind), states=None if outcome is None else [outcome]),
            after=after,
            limit=limit + 1,
        )
    return _page(rows, limit, _HISTORY, lambda row: row.completed_at or row.due_at)


@get("/clubs/{club:str}/operations/{operation_id:str}", tags=TAGS, responses=answers(404))
async def show_operation(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, operation_id: PathId
) -> Operation:
    """One operation as it stands now."""
    club_id = known(club)
    async with db.read() as tx:
        standing = await require_staff(tx, actor, club_id, scope=Scope.READ)
        return operation_shape(await operation(tx, standing, actor, club_id, known(operation_id)))


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
        id=encode_id(rows[0].request_id), operations=[operation_shape(row) for row in rows]
    )


@post("/clubs/{club:str}/requests", tags=TAGS, responses=answers(404, 409, body=True))
async def enqueue_request(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, data: JSONBody[NewRequest]
) -> QueuedRequest:
    """Queue reviewed payloads, all or none, under your authority. Whoever takes it away before they are sent
    stops them.
    """
    queued = await enqueue(db, actor, known(club), data.request_id, data.payloads, _schedule(data.schedule))
    return QueuedRequest(
        id=encode_id(queued.request_id),
        operation_ids=[encode_id(each) for each in queued.operation_ids],
        due_at=queued.due_at,
        is_replay=queued.is_replay,
    )


@post(
    "/clubs/{club:str}/operations/{operation_id:str}/cancel",
    status_code=200,
    tags=TAGS,
    responses=answers(404, 409, body=True),
)
async def cancel_operation(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    operation_id: PathId,
    data: JSONBody[Cancel],
) -> Operation:
    """Stop an operation before it is sent. Cancelling a cancelled one changes nothing."""
    return operation_shape(await cancel(db, actor, known(club), known(operation_id), data.revision))


def _page(
    rows: Sequence[OperationView], limit: int, listing: str, time: Callable[[OperationView], datetime]
) -> OperationPage:
    shown, next_cursor = cut(rows, limit, listing, lambda row: Cursor(time(row), row.id))
    return OperationPage(items=[operation_shape(row) for row in shown], next=next_cursor)


def _kinds(name: str | None) -> list[str] | None:
    return None if name is None else [kind_named(name).name]


def _schedule(asked: AtOnce | AtTime) -> Schedule:
    match asked:
        case AtOnce():
            return Immediate()
        case AtTime(due_at=due_at):
            return Fixed(utc(due_at, "schedule.dueAt"))


HANDLERS = (
    list_upcoming_operations,
    list_past_operations,
    show_operation,
    show_request,
    enqueue_request,
    cancel_operation,
)
