"""Operations of a club: what is to come, what is over, and changing and cancelling one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any

import msgspec
from litestar import get, post, put
from litestar.di import NamedDependency
from litestar.params import FromQuery, JSONBody, QueryParameter
from msgspec import Meta

from lastcall.api.v1.answers import answers
from lastcall.api.v1.paging import CURSOR, After, Limit
from lastcall.api.v1.schedules import When, schedule_of
from lastcall.api.v1.shapes import Id, Input, PathId, Shape, known, known_in, spelled
from lastcall.clubs.policy import require_staff
from lastcall.db.cursor import Cursor, cut, read_cursor
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.operations.kinds import kind_named
from lastcall.operations.machine import State
from lastcall.operations.queries import SEARCH_MOST, Filter, history, operation, subject_in, upcoming
from lastcall.operations.services.asked import MOST_PAYLOADS
from lastcall.operations.services.cancel import cancel
from lastcall.operations.services.edit import edit
from lastcall.operations.views import OperationView
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope

TAGS = ["Operations"]
_UPCOMING, _HISTORY = "operations/upcoming", "operations/history"
MILLISECOND = timedelta(milliseconds=1)

Seen = Annotated[int, Meta(ge=1, le=2**31 - 1)]
StateAsked = Annotated[State | None, QueryParameter(name="state")]
RequestAsked = Annotated[
    str | None, QueryParameter(name="requestId", max_length=26, description="Those of one request.")
]
EventAsked = Annotated[
    str | None, QueryParameter(name="eventId", max_length=26, description="Those that stop with one event.")
]
SubjectAsked = Annotated[
    str | None,
    QueryParameter(
        max_length=SEARCH_MOST,
        description="A VRChat id in full: what is about that person (usr_…), world (wrld_…) or post (not_…).",
    ),
]


class Operation(Shape, frozen=True):
    """One reviewed write for one target. `code` says why it stands as it does, `reason` and `advice` in words.

    `isCancellable` and `isEditable`: this reader may do so as it stands, at this `revision`. `readyAt` is null while it
    waits for the action that it depends on. `eventId` is the event that it is stopped with, `offsetMs` how far from
    that event's start it is due, when it moves with it.
    """

    id: Id
    request_id: Id
    request_size: int
    position: int
    kind: str
    payload: dict[str, Any]
    schedule_kind: str
    event_id: str | None
    offset_ms: int | None
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
    is_editable: bool
    late_outcome: str | None


class OperationPage(Shape, frozen=True):
    """`next` is the cursor of the next page; null at the end."""

    items: list[Operation]
    next: str | None


class Edit(Input, frozen=True):
    """All that the operation is to say, and the `revision` that you saw. `payload` names its `kind`, which stays what
    it is. `confirmBanned`: people whom you choose although VRChat names them as banned.
    """

    revision: Seen
    payload: dict[str, Any]
    schedule: When
    confirm_banned: Annotated[list[str], Meta(max_length=MOST_PAYLOADS)] = msgspec.field(default_factory=list)


class Cancel(Input, frozen=True):
    """The revision that you saw: nothing is cancelled that was edited since."""

    revision: Seen


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
        event_id=spelled(view.event_id),
        offset_ms=None if view.offset is None else view.offset // MILLISECOND,
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
        is_editable=view.is_editable,
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
    in_state: StateAsked = None,
    request_id: RequestAsked = None,
    event_id: EventAsked = None,
    search: SubjectAsked = None,
) -> OperationPage:
    """What is not over, by due time: pending, claimed and submitted. Kinds that the reader has no permission
    for do not appear.
    """
    only = _filter(kind, in_state, request_id, event_id, search)
    club_id, after = known(club), read_cursor(_UPCOMING, cursor, field=CURSOR)
    async with db.read() as tx:
        standing = await require_staff(tx, actor, club_id, scope=Scope.READ)
        rows = await upcoming(tx, standing, actor, club_id, only, after=after, limit=limit + 1)
    return _page(rows, limit, _UPCOMING, lambda row: row.due_at)


@get("/clubs/{club:str}/operations/history", tags=TAGS, responses=answers(404))
async def list_past_operations(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    limit: Limit = 50,
    cursor: After = None,
    kind: FromQuery[str | None] = None,
    in_state: StateAsked = None,
    request_id: RequestAsked = None,
    event_id: EventAsked = None,
    search: SubjectAsked = None,
) -> OperationPage:
    """What is over, the newest end first."""
    only = _filter(kind, in_state, request_id, event_id, search)
    club_id, after = known(club), read_cursor(_HISTORY, cursor, field=CURSOR)
    async with db.read() as tx:
        standing = await require_staff(tx, actor, club_id, scope=Scope.READ)
        rows = await history(tx, standing, actor, club_id, only, after=after, limit=limit + 1)
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


@put(
    "/clubs/{club:str}/operations/{operation_id:str}",
    tags=TAGS,
    responses=answers(404, 409, body=True),
)
async def edit_operation(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    operation_id: PathId,
    data: JSONBody[Edit],
) -> Operation:
    """Change a pending operation. From then on your authority counts for it."""
    return operation_shape(
        await edit(
            db,
            actor,
            known(club),
            known(operation_id),
            data.revision,
            data.payload,
            schedule_of(data.schedule),
            confirm_banned=data.confirm_banned,
        )
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


def _filter(
    kind: str | None,
    state: State | None,
    request_id: str | None,
    event_id: str | None,
    search: str | None,
) -> Filter:
    return Filter(
        kinds=None if kind is None else [kind_named(kind).name],
        states=None if state is None else [state],
        request_id=None if request_id is None else known_in(request_id, "requestId"),
        event_id=None if event_id is None else known_in(event_id, "eventId"),
        subject=None if search is None else subject_in(search),
    )


HANDLERS = (
    list_upcoming_operations,
    list_past_operations,
    show_operation,
    edit_operation,
    cancel_operation,
)
