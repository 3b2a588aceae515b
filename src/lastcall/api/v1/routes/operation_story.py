"""What one operation says and said, what has happened to it, and what comes next."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from litestar import get
from litestar.di import NamedDependency

from lastcall.api.v1.answers import answers
from lastcall.api.v1.routes.operations import MILLISECOND, TAGS, Operation, operation_shape
from lastcall.api.v1.shapes import Id, PathId, Shape, known, spelled
from lastcall.clubs.policy import require_staff
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.operations.codes import REASONS
from lastcall.operations.explanation import Explanation, explain
from lastcall.operations.machine import State
from lastcall.operations.queries import operation
from lastcall.operations.revisions import Happening, Moment, Revision, history_of, timeline
from lastcall.operations.views import OperationView
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope


class OperationRevision(Shape, frozen=True):
    """What an operation says or said, and who made it say so: that person's authority counted from then on."""

    revision: int
    payload: dict[str, Any]
    schedule_kind: str
    event_id: str | None
    offset_ms: int | None
    due_at: datetime
    by_id: Id
    by_name: str
    made_at: datetime


class OperationRevisions(Shape, frozen=True):
    """The newest first. There is no further page."""

    items: list[OperationRevision]


class OperationMoment(Shape, frozen=True):
    """One thing that happened to an operation. `state`, `code` and `reason` are of its end or of a late report,
    `revision` of what a person did. Without `byName` it was Lastcall itself.
    """

    at: datetime
    what: Happening
    by_name: str | None
    revision: int | None
    state: State | None
    code: str | None
    reason: str | None


class OperationTimeline(Shape, frozen=True):
    """In the order in which it happened."""

    items: list[OperationMoment]


class OperationExplanation(Shape, frozen=True):
    """An operation with `why` it stands as it does, what comes `next`, at the latest at `nextAt` where that is known,
    and what has happened to it.
    """

    operation: Operation
    why: str | None
    next: str
    next_at: datetime | None
    timeline: list[OperationMoment]


@get("/clubs/{club:str}/operations/{operation_id:str}/revisions", tags=TAGS, responses=answers(404))
async def list_operation_revisions(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, operation_id: PathId
) -> OperationRevisions:
    """What the operation says and what it said before."""
    club_id = known(club)
    async with db.read() as tx:
        standing = await require_staff(tx, actor, club_id, scope=Scope.READ)
        found = await history_of(tx, standing, actor, club_id, known(operation_id))
    return OperationRevisions(items=[_revision(one) for one in found])


@get("/clubs/{club:str}/operations/{operation_id:str}/timeline", tags=TAGS, responses=answers(404))
async def show_operation_timeline(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, operation_id: PathId
) -> OperationTimeline:
    """What has happened to the operation."""
    club_id = known(club)
    async with db.read() as tx:
        standing = await require_staff(tx, actor, club_id, scope=Scope.READ)
        found = await timeline(tx, standing, actor, club_id, known(operation_id))
    return OperationTimeline(items=[_moment(one) for one in found])


@get("/clubs/{club:str}/operations/{operation_id:str}/explanation", tags=TAGS, responses=answers(404))
async def explain_operation(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, operation_id: PathId
) -> OperationExplanation:
    """Why the operation stands as it does, and what comes next."""
    club_id, asked = known(club), known(operation_id)
    async with db.read() as tx:
        standing = await require_staff(tx, actor, club_id, scope=Scope.READ)
        row = await operation(tx, standing, actor, club_id, asked)
        happened = await timeline(tx, standing, actor, club_id, asked)
        found = explain(row, await tx.raw.fetchval("select lastcall_now()"))
    return explanation_shape(row, found, happened)


def explanation_shape(
    row: OperationView, found: Explanation, happened: Sequence[Moment]
) -> OperationExplanation:
    return OperationExplanation(
        operation=operation_shape(row),
        why=found.why,
        next=found.next,
        next_at=found.next_at,
        timeline=[_moment(one) for one in happened],
    )


def _revision(one: Revision) -> OperationRevision:
    return OperationRevision(
        revision=one.revision,
        payload=one.payload,
        schedule_kind=one.schedule_kind,
        event_id=spelled(one.event_id),
        offset_ms=None if one.offset is None else one.offset // MILLISECOND,
        due_at=one.due_at,
        by_id=encode_id(one.by_id),
        by_name=one.by_name,
        made_at=one.made_at,
    )


def _moment(one: Moment) -> OperationMoment:
    return OperationMoment(
        at=one.at,
        what=one.what,
        by_name=one.by_name,
        revision=one.revision,
        state=one.state,
        code=one.code,
        reason=None if one.code is None else REASONS[one.code].label,
    )


HANDLERS = (list_operation_revisions, show_operation_timeline, explain_operation)
