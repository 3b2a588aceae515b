"""Calendars of others: read into a document, reviewed date by date, and applied as far as somebody chose (EVT-02)."""

from __future__ import annotations

from typing import Any

from litestar import Response, get, post
from litestar.datastructures import UploadFile
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Redirect

from lastcall.db.ids import encode_id
from lastcall.errors import Conflict, Invalid, LastcallError, NotFound, TooFast, Unavailable
from lastcall.events.fields import EventFields
from lastcall.events.import_queries import ImportView, ItemView, calendar_import, calendar_imports
from lastcall.events.imports.comparison import Difference, ItemChange
from lastcall.events.queries import Publication
from lastcall.events.services.importing import apply_items, import_feed, import_file, skip_items
from lastcall.web.access import Access, Visitor, access
from lastcall.web.club import ClubPage, club_page
from lastcall.web.events import own_zone, time_words, zone_choices
from lastcall.web.fields import chosen_ids, known_id, read_revision
from lastcall.web.looks import Look
from lastcall.web.pages import PageRequest, form_fields, go_to
from lastcall.web.room import Web
from lastcall.web.routes.events import SECTION, require_managing, zoned_of
from lastcall.web.times import Zoned

CHANGES = {
    ItemChange.NEW: Look("ok", "plus", "New"),
    ItemChange.CHANGED: Look("wait", "turn", "Changed"),
    ItemChange.SAME: Look("", "check", "The same"),
    ItemChange.CANCELLED: Look("bad", "slash", "Cancelled there"),
    ItemChange.UNREADABLE: Look("unknown", "question", "Not understood"),
}
_FIELDS = {"title": "Title", "time": "Time", "zone": "Zone", "description": "Description"}


@get("/c/{slug:str}/events/imports", opt=access(Access.STAFF))
async def imports_page(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Response[str]:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    return await _list(request, web, page)


@post("/c/{slug:str}/events/imports", opt=access(Access.STAFF))
async def read_calendar(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Response[str] | Redirect:
    """Read a file or fetch an address into a document. No event is written by it."""
    given = await form_fields(request)
    upload = (await request.form()).get("file")
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    require_managing(page)
    zone, url = given.get("zone") or None, given.get("url", "").strip()
    try:
        if isinstance(upload, UploadFile) and upload.filename:
            content = await upload.read()
            made = await import_file(
                web.database, visitor.actor, page.club.id, upload.filename, content, zone
            )
        elif url:
            made = await import_feed(web.database, visitor.actor, page.club.id, url, zone)
        else:
            raise Invalid(
                "calendar_missing", "There is no calendar yet.", advice="Choose a file, or give an address."
            )
    except (Invalid, Conflict, TooFast, Unavailable) as error:
        return await _list(request, web, page, given=given, problem=error)
    return go_to(page.path(f"events/imports/{encode_id(made.id)}"))


@get("/c/{slug:str}/events/imports/{import_id:str}", opt=access(Access.STAFF))
async def import_page(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    import_id: FromPath[str],
) -> Response[str]:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        found = await calendar_import(tx, page.standing, page.club.id, known_id(import_id))
    return _document(request, web, page, found)


@post("/c/{slug:str}/events/imports/{import_id:str}", opt=access(Access.STAFF))
async def decide(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    import_id: FromPath[str],
) -> Response[str] | Redirect:
    """Apply the dates that were chosen, or say that they are not wanted."""
    given = await form_fields(request)
    chosen = await chosen_ids(request, "item")
    wanted = known_id(import_id)
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    require_managing(page)
    subject = (web.database, visitor.actor, page.club.id, wanted, chosen, read_revision(given))
    refused: dict[Any, str] = {}
    try:
        if not chosen:
            raise Invalid("nothing_chosen", "No date is chosen.", advice="Tick the ones that you want.")
        if given.get("step") == "skip":
            await skip_items(*subject)
        else:
            publication = Publication.PUBLISHED if given.get("publish") == "yes" else Publication.DRAFT
            refused = dict((await apply_items(*subject, publication)).refused)
    except (Invalid, Conflict, NotFound) as error:
        async with web.database.read() as tx:
            found = await calendar_import(tx, page.standing, page.club.id, wanted)
        return _document(request, web, page, found, problem=error)
    return go_to(page.path(f"events/imports/{encode_id(wanted)}{'#refused' if refused else ''}"))


async def _list(
    request: PageRequest,
    web: Web,
    page: ClubPage,
    *,
    given: dict[str, str] | None = None,
    problem: LastcallError | None = None,
) -> Response[str]:
    async with web.database.read() as tx:
        documents = await calendar_imports(tx, page.standing, page.club.id)
    zoned = zoned_of(request, web, page)
    return web.pages.show(
        request,
        "event_imports.html",
        page.place(SECTION),
        page.now,
        status=problem.status if problem else 200,
        documents=documents,
        zones=zone_choices(page.club.zone, own_zone(zoned.zone)),
        given={"url": "", "zone": page.club.zone} | (given or {}),
        problem=problem,
    )


def _document(
    request: PageRequest, web: Web, page: ClubPage, found: ImportView, *, problem: LastcallError | None = None
) -> Response[str]:
    zoned = zoned_of(request, web, page)

    def when(item: ItemView) -> str:
        fields = item.fields.written(item.event)
        return time_words(fields.time, zoned, fields.zone)

    return web.pages.show(
        request,
        "event_import.html",
        page.place(SECTION),
        page.now,
        status=problem.status if problem else 200,
        document=found,
        open_count=sum(1 for item in found.items if item.is_open),
        looks=CHANGES,
        when=when,
        changed=lambda item: [_difference(one, item, zoned) for one in item.differences],
        problem=problem,
    )


def _difference(one: Difference, item: ItemView, zoned: Zoned) -> tuple[str, str, str]:
    """The field's word, how it is, and how it would be."""
    if one.field != "time":
        return _FIELDS[one.field], str(one.before), str(one.after)
    assert item.event is not None
    after: EventFields = item.fields.written(item.event)
    return (
        _FIELDS["time"],
        time_words(item.event.time, zoned, item.event.zone),
        time_words(after.time, zoned, after.zone),
    )


HANDLERS = (imports_page, read_calendar, import_page, decide)
