"""The activity log of a club: pages, filters, and the whole of it as a file."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from litestar import get
from litestar.di import NamedDependency
from litestar.params import QueryParameter
from litestar.response import Stream

from lastcall.api.files import file_of
from lastcall.api.v1.answers import answers
from lastcall.api.v1.paging import CURSOR, After, Limit
from lastcall.api.v1.shapes import Id, PathId, Shape, known, known_in, spelled, utc
from lastcall.clubs.activity_log import (
    ActivityFilters,
    ActivityView,
    ExportForm,
    activity_page,
    export_activity,
)
from lastcall.db.cursor import read_cursor, write_cursor
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.people.actor import Actor

TAGS = ["Activity"]
_LISTING = "activity"

Word = Annotated[str | None, QueryParameter(max_length=100)]
Family = Annotated[
    str | None, QueryParameter(max_length=100, description="The part of an action before the dot.")
]
Since = Annotated[datetime | None, QueryParameter(description="Not before this time.")]
Until = Annotated[datetime | None, QueryParameter(description="Before this time.")]


class Activity(Shape, frozen=True):
    """One entry. Names are of today: a person who was erased has theirs no more."""

    id: Id
    created_at: datetime
    actor_kind: str
    actor_id: str | None
    actor_name: str
    action: str
    entity_type: str
    entity_id: Id
    entity_name: str | None
    details: dict[str, Any]


class ActivityPage(Shape, frozen=True):
    """`next` is the cursor of the next page; null at the end. A page of a filtered log may be short, even empty,
    and yet have a next one.
    """

    items: list[Activity]
    next: str | None


@get("/clubs/{club:str}/activity", tags=TAGS, responses=answers(404))
async def list_activity(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    limit: Limit = 50,
    cursor: After = None,
    actor_id: Annotated[str | None, QueryParameter(name="actorId", max_length=26)] = None,
    family: Family = None,
    action: Word = None,
    entity_type: Annotated[str | None, QueryParameter(name="entityType", max_length=100)] = None,
    entity_id: Annotated[str | None, QueryParameter(name="entityId", max_length=26)] = None,
    since: Since = None,
    until: Until = None,
) -> ActivityPage:
    """What happened in a club, the newest first. The owner sees all of it; others need `manage_staff` and see what
    is about the club and its staff.
    """
    filters = _filters(actor_id, family, action, entity_type, entity_id, since, until)
    async with db.read() as tx:
        page = await activity_page(
            tx, actor, known(club), filters, after=read_cursor(_LISTING, cursor, field=CURSOR), limit=limit
        )
    return ActivityPage(
        items=[_activity(view) for view in page.entries],
        next=None if page.next is None else write_cursor(_LISTING, page.next),
    )


@get(
    "/clubs/{club:str}/activity.jsonl",
    media_type="application/x-ndjson",
    tags=TAGS,
    responses=answers(404),
)
async def export_activity_as_json_lines(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    family: Family = None,
    since: Since = None,
    until: Until = None,
) -> Stream:
    """The log as a file, one JSON object a line. It ends where the right to read it does."""
    filters = _filters(None, family, None, None, None, since, until)
    return await file_of(await export_activity(db, actor, known(club), ExportForm.JSON_LINES, filters))


@get("/clubs/{club:str}/activity.csv", media_type="text/csv", tags=TAGS, responses=answers(404))
async def export_activity_as_csv(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    family: Family = None,
    since: Since = None,
    until: Until = None,
) -> Stream:
    """The log as a file for a spreadsheet."""
    filters = _filters(None, family, None, None, None, since, until)
    return await file_of(await export_activity(db, actor, known(club), ExportForm.CSV, filters))


def _filters(
    actor_id: str | None,
    family: str | None,
    action: str | None,
    entity_type: str | None,
    entity_id: str | None,
    since: datetime | None,
    until: datetime | None,
) -> ActivityFilters:
    return ActivityFilters(
        actor_id=None if actor_id is None else known_in(actor_id, "actor_id"),
        family=family,
        action=action,
        entity_type=entity_type,
        entity_id=None if entity_id is None else known_in(entity_id, "entity_id"),
        since=None if since is None else utc(since, "since"),
        until=None if until is None else utc(until, "until"),
    )


def _activity(view: ActivityView) -> Activity:
    return Activity(
        id=encode_id(view.id),
        created_at=view.created_at,
        actor_kind=view.actor_kind,
        actor_id=spelled(view.actor_id),
        actor_name=view.actor_name,
        action=view.action,
        entity_type=view.entity_type,
        entity_id=encode_id(view.entity_id),
        entity_name=view.entity_name,
        details=view.details,
    )


HANDLERS = (list_activity, export_activity_as_json_lines, export_activity_as_csv)
