"""Clubs: those of a person, their settings, and their life."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from litestar import get, post, put
from litestar.di import NamedDependency
from litestar.params import JSONBody
from litestar.response import Stream
from msgspec import Meta

from lastcall.api.files import file_of
from lastcall.api.v1.answers import answers
from lastcall.api.v1.idempotency import Key, called, once
from lastcall.api.v1.paging import CURSOR, After, Limit, Search
from lastcall.api.v1.requests import ApiRequest
from lastcall.api.v1.shapes import Id, Input, PathId, Shape, known, utc
from lastcall.clubs import queries
from lastcall.clubs.export import export_club
from lastcall.clubs.life import pause_club, resume_club, unarchive_club
from lastcall.clubs.policy import require_staff
from lastcall.clubs.service import ClubFields, create_club, edit_club
from lastcall.clubs.tables import MAX_RETENTION_DAYS
from lastcall.db.cursor import read_cursor, write_cursor
from lastcall.db.database import Database
from lastcall.db.ids import encode_id
from lastcall.people.actor import Actor
from lastcall.people.scopes import Scope

TAGS = ["Clubs"]
_ALL = "clubs"


class Club(Shape, frozen=True):
    """A club as its staff see it. `zone` is an IANA name."""

    id: Id
    slug: str
    name: str
    zone: str
    state: str


class Clubs(Shape, frozen=True):
    """By name. There is no further page."""

    items: list[Club]


class ClubSettings(Shape, frozen=True):
    """All that is set about a club. `retentionDays` null: nothing is archived by itself."""

    id: Id
    slug: str
    name: str
    zone: str
    state: str
    owner_id: Id
    owner_name: str
    retention_days: int | None
    paused_at: datetime | None
    pause_reason: str | None
    archived_at: datetime | None
    created_at: datetime
    updated_at: datetime


class ClubPage(Shape, frozen=True):
    """`next` is the cursor of the next page; null at the end."""

    items: list[ClubSettings]
    next: str | None


class NewClub(Input, frozen=True):
    """A club and the address of its owner, who is added as a person when nobody has it."""

    name: str
    slug: str
    zone: str
    owner_email: str


class NewClubMade(Shape, frozen=True):
    """The club that was made; `isNewPerson` when its owner was added with it."""

    id: Id
    owner_id: Id
    is_new_person: bool


class ClubEdit(Input, frozen=True):
    """All settings at once. `seen` is the `updatedAt` that they were read with."""

    name: str
    slug: str
    zone: str
    retention_days: Annotated[int, Meta(ge=1, le=MAX_RETENTION_DAYS)] | None
    seen: datetime


@get("/clubs", tags=TAGS, responses=answers())
async def list_clubs(db: NamedDependency[Database], actor: NamedDependency[Actor]) -> Clubs:
    """The clubs that you own or work for."""
    async with db.read() as tx:
        found = await queries.clubs_of(tx, actor)
    return Clubs(items=[_club(view) for view in found])


@get("/clubs/{club:str}", tags=TAGS, responses=answers(404))
async def show_club(db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId) -> Club:
    """A club on whose staff you are."""
    club_id = known(club)
    async with db.read() as tx:
        await require_staff(tx, actor, club_id, scope=Scope.READ)
        return _club(await queries.read_settings(tx, club_id))


@get("/clubs/{club:str}/settings", tags=TAGS, responses=answers(404))
async def show_club_settings(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId
) -> ClubSettings:
    """A club's settings, for its owner and operators."""
    async with db.read() as tx:
        return settings_shape(await queries.club_settings(tx, actor, known(club)))


@put("/clubs/{club:str}/settings", tags=TAGS, responses=answers(404, 409, body=True))
async def edit_club_settings(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId, data: JSONBody[ClubEdit]
) -> ClubSettings:
    """Set a club's settings, all at once."""
    fields = ClubFields(data.name, data.slug, data.zone, data.retention_days)
    return settings_shape(await edit_club(db, actor, known(club), fields, utc(data.seen, "seen")))


@post("/clubs/{club:str}/pause", status_code=200, tags=TAGS, responses=answers(404, 409))
async def pause_one_club(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId
) -> ClubSettings:
    """Stop what an active club does by itself. Reviewed operations go on."""
    return settings_shape(await pause_club(db, actor, known(club)))


@post("/clubs/{club:str}/resume", status_code=200, tags=TAGS, responses=answers(404, 409))
async def resume_one_club(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId
) -> ClubSettings:
    """Let a paused club go on."""
    return settings_shape(await resume_club(db, actor, known(club)))


@post("/clubs/{club:str}/unarchive", status_code=200, tags=TAGS, responses=answers(404, 409))
async def unarchive_one_club(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId
) -> ClubSettings:
    """Bring an archived club back. Archiving, handing on and deleting one needs a person in a browser."""
    return settings_shape(await unarchive_club(db, actor, known(club)))


@get("/clubs/{club:str}/export", media_type="application/x-ndjson", tags=TAGS, responses=answers(404))
async def export_one_club(
    db: NamedDependency[Database], actor: NamedDependency[Actor], club: PathId
) -> Stream:
    """Everything that a club holds, one JSON object a line, without secrets. Owner only; it is recorded in the
    activity log.
    """
    return await file_of(export_club(db, actor, known(club)))


@get("/operator/clubs", tags=["Operator"], responses=answers())
async def list_all_clubs(
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    limit: Limit = 50,
    cursor: After = None,
    search: Search = "",
) -> ClubPage:
    """Every club of this server, the newest first. Operators only."""
    async with db.read() as tx:
        page = await queries.clubs_page(
            tx, actor, search=search, after=read_cursor(_ALL, cursor, field=CURSOR), limit=limit
        )
    return ClubPage(
        items=[settings_shape(view) for view in page.clubs],
        next=None if page.next is None else write_cursor(_ALL, page.next),
    )


@post("/operator/clubs", tags=["Operator"], responses=answers(409, body=True))
async def create_one_club(
    request: ApiRequest,
    db: NamedDependency[Database],
    actor: NamedDependency[Actor],
    data: JSONBody[NewClub],
    key: Key = None,
) -> NewClubMade:
    """Add a club. Operators only."""

    async def make() -> NewClubMade:
        made = await create_club(db, actor, data.name, data.slug, data.zone, data.owner_email)
        return NewClubMade(
            id=encode_id(made.club_id), owner_id=encode_id(made.owner_id), is_new_person=made.is_new_person
        )

    return await once(db, actor, called(request), key, data, make, NewClubMade)


def _club(view: queries.ClubView | queries.ClubSettings) -> Club:
    return Club(id=encode_id(view.id), slug=view.slug, name=view.name, zone=view.zone, state=view.state)


def settings_shape(view: queries.ClubSettings) -> ClubSettings:
    return ClubSettings(
        id=encode_id(view.id),
        slug=view.slug,
        name=view.name,
        zone=view.zone,
        state=view.state,
        owner_id=encode_id(view.owner_id),
        owner_name=view.owner_name,
        retention_days=view.retention_days,
        paused_at=view.paused_at,
        pause_reason=view.pause_reason,
        archived_at=view.archived_at,
        created_at=view.created_at,
        updated_at=view.updated_at,
    )


HANDLERS = (
    list_clubs,
    show_club,
    show_club_settings,
    edit_club_settings,
    pause_one_club,
    resume_one_club,
    unarchive_one_club,
    export_one_club,
    list_all_clubs,
    create_one_club,
)
