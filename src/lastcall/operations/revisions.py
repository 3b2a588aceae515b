"""What an operation said before, and what has happened to it, in order."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from lastcall.clubs.policy import Standing
from lastcall.db.transaction import Reader
from lastcall.operations.machine import State
from lastcall.operations.queries import operation
from lastcall.operations.views import OperationView
from lastcall.people.actor import Actor

REVISIONS_MOST = 200
"""The newest so many are shown; an action is seldom edited twice."""


@dataclass(frozen=True)
class Revision:
    """One revision of an operation. ``by_name`` made it: queued the operation, or edited it at ``made_at``; from then
    on that person's authority counted. The newest is the operation as it stands.
    """

    revision: int
    payload: dict[str, Any]
    schedule_kind: str
    event_id: UUID | None
    offset: timedelta | None
    due_at: datetime
    by_id: UUID
    by_name: str
    made_at: datetime


class Happening(StrEnum):
    """What can have happened to an operation, as far as its rows say when."""

    QUEUED = "queued"
    EDITED = "edited"
    SUBMITTED = "submitted"
    ENDED = "ended"
    REPORTED_LATE = "reported_late"


@dataclass(frozen=True)
class Moment:
    """One entry of a timeline. ``state`` and ``code`` are of an end or of a late report, ``revision`` of what a person
    did; without a name it was Lastcall itself.
    """

    at: datetime
    what: Happening
    by_name: str | None = None
    revision: int | None = None
    state: State | None = None
    code: str | None = None


_EARLIER = """
    select r.revision, r.payload::text as payload, r.schedule::text as schedule, r.due_at,
           r.edited_at, r.edited_by, e.display_name as edited_by_name
      from operation_revisions r
      join people e on e.id = r.edited_by
     where r.club_id = $1 and r.operation_id = $2
     order by r.revision desc
     limit $3
"""
_QUEUED_BY = """
    select q.created_by, p.display_name
      from operation_requests q
      join people p on p.id = q.created_by
     where q.club_id = $1 and q.id = $2
"""
_LATE = "select outcome, code, reported_at from late_results where club_id = $1 and operation_id = $2"
_CANCELLED_BY = """
    select p.display_name
      from activity_log a
      left join people p on p.id = a.actor_id
     where a.club_id = $1 and (a.entity_type, a.entity_id, a.action) in (
           ('operation', $2, 'operation.cancelled'), ('operation_request', $3, 'operations.cancelled'))
     order by a.created_at desc
     limit 1
"""


async def history_of(
    tx: Reader, standing: Standing, actor: Actor, club_id: UUID, operation_id: UUID
) -> list[Revision]:
    """Every revision, the newest first. ``NotFound`` as for the operation itself."""
    row = await operation(tx, standing, actor, club_id, operation_id)
    return await _revisions(tx, club_id, row)


async def timeline(
    tx: Reader, standing: Standing, actor: Actor, club_id: UUID, operation_id: UUID
) -> list[Moment]:
    """What has happened to the operation, the first first. ``NotFound`` as for the operation itself."""
    row = await operation(tx, standing, actor, club_id, operation_id)
    moments = [
        Moment(
            at=one.made_at,
            what=Happening.QUEUED if one.revision == 1 else Happening.EDITED,
            by_name=one.by_name,
            revision=one.revision,
        )
        for one in reversed(await _revisions(tx, club_id, row))
    ]
    if row.submitted_at is not None:
        moments.append(Moment(row.submitted_at, Happening.SUBMITTED))
    if row.completed_at is not None:
        by_name = await _canceller(tx, club_id, row)
        moments.append(Moment(row.completed_at, Happening.ENDED, by_name, state=row.state, code=row.code))
    late = await tx.raw.fetchrow(_LATE, club_id, operation_id)
    if late is not None:
        reported = State(late["outcome"])
        moments.append(
            Moment(late["reported_at"], Happening.REPORTED_LATE, state=reported, code=late["code"])
        )
    return moments


async def _revisions(tx: Reader, club_id: UUID, row: OperationView) -> list[Revision]:
    earlier = await tx.raw.fetch(_EARLIER, club_id, row.id, REVISIONS_MOST)
    queued = await tx.raw.fetchrow(_QUEUED_BY, club_id, row.request_id)
    assert queued is not None
    # An edit's row holds what was before, and who made what came after.
    made = {
        one["revision"] + 1: (one["edited_by"], one["edited_by_name"], one["edited_at"]) for one in earlier
    }
    first = (queued["created_by"], queued["display_name"], row.created_at)
    newest = Revision(
        row.revision,
        row.payload,
        row.schedule_kind,
        row.event_id,
        row.offset,
        row.due_at,
        *made.get(row.revision, first),
    )
    return [newest, *(_revision(one, made.get(one["revision"], first)) for one in earlier)]


def _revision(row: asyncpg.Record, by: tuple[UUID, str, datetime]) -> Revision:
    schedule = msgspec.json.decode(row["schedule"])
    event_id, offset_ms = schedule.get("event_id"), schedule.get("offset_ms")
    return Revision(
        row["revision"],
        msgspec.json.decode(row["payload"]),
        schedule["kind"],
        None if event_id is None else UUID(event_id),
        None if offset_ms is None else timedelta(milliseconds=offset_ms),
        row["due_at"],
        *by,
    )


async def _canceller(tx: Reader, club_id: UUID, row: OperationView) -> str | None:
    if row.code != "cancelled_by_staff":
        return None
    name: str | None = await tx.raw.fetchval(_CANCELLED_BY, club_id, row.id, row.request_id)
    return name
