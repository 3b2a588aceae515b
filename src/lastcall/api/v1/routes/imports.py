"""Calendar imports: a calendar is read into a document, and what somebody reviews of it is applied (EVT-02)."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from litestar import get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody
from msgspec import Meta

from lastcall.api.intake import BODY_LIMIT
from lastcall.api.v1.answers import answers
from lastcall.api.v1.event_shapes import Event, Time, event_shape, time_shape
from lastcall.api.v1.shapes import Id, Input, PathId, Shape, known, known_in
from lastcall.clubs.policy import require_staff
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.events.import_queries import ImportView, ItemView, calendar_import, calendar_imports
from lastcall.events.imports.comparison import ItemChange
from lastcall.events.queries import Publication
from lastcall.events.services.importing import APPLIED_MOST, apply_items, import_feed, import_file, skip_items
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope

TAGS = ["Events"]


class ImportSummary(Shape, frozen=True):
    """A document: `source` is the file's name or the feed's host, `undecided` how many of its dates wait."""

    id: Id
    source_kind: str
    source: str
    name: str
    created_by: str
    created_at: datetime
    dates: int
    undecided: int


class ImportSummaries(Shape, frozen=True):
    """The newest first. There is no further page."""

    items: list[ImportSummary]


class FieldDifference(Shape, frozen=True):
    """One field that applying would change, as it is and as it would be."""

    field: str
    before: str | Time
    after: str | Time


class ImportItem(Shape, frozen=True):
    """One date of the calendar beside the club's event of it, where there is one. `isOpen`: there is something to
    decide. `problem` says why it cannot be read, or was not applied.
    """

    id: Id
    change: ItemChange
    title: str
    description: str
    zone: str
    starts_at: datetime | None
    ends_at: datetime | None
    date: str | None
    notes: list[str]
    event: Event | None
    differences: list[FieldDifference]
    decision: str | None
    problem: str | None
    is_open: bool


class CalendarImport(Shape, frozen=True):
    """A document with its dates, the next first. `revision` is what a review names. Nothing of it is an event before it
    is applied.
    """

    id: Id
    source_kind: str
    source: str
    name: str
    zone: str
    notes: list[str]
    revision: int
    created_by: str
    created_at: datetime
    items: list[ImportItem]


class CalendarFile(Input, frozen=True):
    """A calendar as text (iCalendar). Times that name no zone are in `zone`, the club's without it."""

    name: Annotated[str, Meta(max_length=200)]
    content: str
    zone: str | None = None


class CalendarFeed(Input, frozen=True):
    """The address of a calendar, https only. It is fetched now and not kept."""

    url: Annotated[str, Meta(max_length=2000)]
    zone: str | None = None


class ImportChoice(Input, frozen=True):
    """The dates that are decided, and the `revision` of the document that was read."""

    items: Annotated[list[Id], Meta(min_length=1, max_length=APPLIED_MOST)]
    seen: Annotated[int, Meta(ge=1, le=2**31 - 1)]


class ImportApply(ImportChoice, frozen=True):
    """`publication` is of events that are new."""

    publication: Publication = Publication.DRAFT


class RefusedItem(Shape, frozen=True):
    """A date that was not written, and why."""

    id: Id
    detail: str


class ImportReviewed(Shape, frozen=True):
    """How many dates were written, which were not, and the document as it is then."""

    applied: int
    refused: list[RefusedItem]
    document: CalendarImport


@get("/clubs/{club:str}/imports", tags=TAGS, responses=answers(404))
async def list_imports(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId
) -> ImportSummaries:
    """The calendars that were read; needs `manage_events`, as everything here."""
    club_id = known(club)
    async with db.read() as tx:
        standing = await require_staff(tx, actor, club_id, scope=Scope.READ)
        found = await calendar_imports(tx, standing, club_id)
    return ImportSummaries(items=[ImportSummary(**{**asdict(one), "id": encode_id(one.id)}) for one in found])


@get("/clubs/{club:str}/imports/{import_id:str}", tags=TAGS, responses=answers(404))
async def show_import(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, import_id: PathId
) -> CalendarImport:
    """One document, to review."""
    club_id = known(club)
    async with db.read() as tx:
        standing = await require_staff(tx, actor, club_id, scope=Scope.READ)
        return import_shape(await calendar_import(tx, standing, club_id, known(import_id)))


@post(
    "/clubs/{club:str}/imports/file",
    tags=TAGS,
    responses=answers(404, body=True),
    request_max_body_size=BODY_LIMIT,
)
async def import_calendar_file(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, data: JSONBody[CalendarFile]
) -> CalendarImport:
    """Read a calendar into a document. The whole call has at most a mebibyte."""
    content = data.content.encode()
    return import_shape(await import_file(db, actor, known(club), data.name, content, data.zone))


@post("/clubs/{club:str}/imports/feed", tags=TAGS, responses=answers(404, body=True))
async def import_calendar_feed(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, data: JSONBody[CalendarFeed]
) -> CalendarImport:
    """Fetch a calendar and read it into a document."""
    return import_shape(await import_feed(db, actor, known(club), data.url, data.zone))


@post(
    "/clubs/{club:str}/imports/{import_id:str}/apply",
    status_code=200,
    tags=TAGS,
    responses=answers(404, 409, body=True),
)
async def apply_import_items(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    import_id: PathId,
    data: JSONBody[ImportApply],
) -> ImportReviewed:
    """Write what the calendar says of these dates. One that cannot be written does not stop the others."""
    done = await apply_items(
        db, actor, known(club), known(import_id), _items(data), data.seen, data.publication
    )
    return ImportReviewed(
        applied=done.applied,
        refused=[RefusedItem(id=encode_id(each), detail=why) for each, why in done.refused],
        document=import_shape(done.document),
    )


@post(
    "/clubs/{club:str}/imports/{import_id:str}/skip",
    status_code=200,
    tags=TAGS,
    responses=answers(404, 409, body=True),
)
async def skip_import_items(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    club: PathId,
    import_id: PathId,
    data: JSONBody[ImportChoice],
) -> CalendarImport:
    """Say that these dates are not wanted."""
    return import_shape(await skip_items(db, actor, known(club), known(import_id), _items(data), data.seen))


def _items(data: ImportChoice) -> set[Any]:
    return {known_in(each, f"items.{number}") for number, each in enumerate(data.items)}


def import_shape(view: ImportView) -> CalendarImport:
    return CalendarImport(
        id=encode_id(view.id),
        source_kind=view.source_kind,
        source=view.source,
        name=view.name,
        zone=view.zone,
        notes=list(view.notes),
        revision=view.revision,
        created_by=view.created_by,
        created_at=view.created_at,
        items=[_item(one) for one in view.items],
    )


def _item(one: ItemView) -> ImportItem:
    return ImportItem(
        id=encode_id(one.id),
        change=one.change,
        title=one.fields.title,
        description=one.fields.description,
        zone=one.fields.zone,
        starts_at=one.fields.starts_at,
        ends_at=one.fields.ends_at,
        date=None if one.fields.date is None else one.fields.date.isoformat(),
        notes=list(one.notes),
        event=None if one.event is None else event_shape(one.event),
        differences=[
            FieldDifference(field=each.field, before=_value(each.before), after=_value(each.after))
            for each in one.differences
        ],
        decision=one.decision,
        problem=one.problem,
        is_open=one.is_open,
    )


def _value(value: Any) -> str | Time:
    return value if isinstance(value, str) else time_shape(value)


HANDLERS = (
    list_imports,
    show_import,
    import_calendar_file,
    import_calendar_feed,
    apply_import_items,
    skip_import_items,
)
