"""The editor of events: a form, and a review before anything that is scheduled by the event moves or stops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Redirect

from lastcall.db.ids import encode_id
from lastcall.errors import Conflict, Invalid, LastcallError
from lastcall.events.queries import EventView, Publication
from lastcall.events.services.write import create_event, edit_event
from lastcall.operations.queries import PAGE_MOST, Filter, upcoming
from lastcall.web.access import Access, Visitor, access
from lastcall.web.club import ClubPage, club_page
from lastcall.web.events import (
    EventForm,
    Touched,
    form_of,
    own_zone,
    read_event_form,
    time_words,
    touched_by,
    zone_choices,
)
from lastcall.web.fields import read_revision
from lastcall.web.pages import PageRequest, form_fields, go_to
from lastcall.web.room import Web
from lastcall.web.routes.events import SECTION, entries_of, look_up, require_managing, zoned_of
from lastcall.web.scheduled import Entry


@get("/c/{slug:str}/events/new", opt=access(Access.STAFF))
async def new_event(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Response[str]:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    require_managing(page)
    return _editor(request, web, page, None, EventForm(zone=page.club.zone))


@post("/c/{slug:str}/events/new", opt=access(Access.STAFF))
async def create(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Response[str] | Redirect:
    given = await form_fields(request)
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    require_managing(page)
    form = read_event_form(_stepped(given))
    if form.fields is None:
        return _editor(request, web, page, None, form, status=Invalid.status)
    if form.changes and given.get("step") != "confirm":
        return _review(request, web, page, None, form, given, [], is_cut=False)
    publication = Publication.PUBLISHED if given.get("publish") == "yes" else Publication.DRAFT
    try:
        made = await create_event(
            web.database, visitor.actor, page.club.id, form.fields, publication=publication
        )
    except (Invalid, Conflict) as error:
        return _editor(request, web, page, None, form, status=error.status, refused=error)
    return go_to(page.path(f"events/{encode_id(made.id)}"))


@get("/c/{slug:str}/events/{event_id:str}/edit", opt=access(Access.STAFF))
async def open_event(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    event_id: FromPath[str],
) -> Response[str]:
    async with web.database.read() as tx:
        page, found = await look_up(tx, visitor, slug, event_id)
    require_managing(page)
    return _editor(request, web, page, found, form_of(found))


@post("/c/{slug:str}/events/{event_id:str}/edit", opt=access(Access.STAFF))
async def save_event(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    event_id: FromPath[str],
) -> Response[str] | Redirect:
    """Save the editor; before that a review, where scheduled work moves or stops or the clock plays a trick."""
    given = await form_fields(request)
    async with web.database.read() as tx:
        page, found = await look_up(tx, visitor, slug, event_id)
        require_managing(page)
        rows = await upcoming(
            tx, page.standing, visitor.actor, page.club.id, Filter(event_id=found.id), limit=PAGE_MOST
        )
    seen = read_revision(given)
    form = read_event_form(_stepped(given))
    if given.get("step") == "change" or form.fields is None:
        status = 200 if given.get("step") == "change" else Invalid.status
        return _editor(request, web, page, found, form, seen=seen, status=status)
    touched = touched_by(rows, found, form.fields.time)
    if (touched or form.changes) and given.get("step") != "confirm":
        entries = await entries_of(web, page, touched)
        return _review(request, web, page, found, form, given, entries, is_cut=len(rows) == PAGE_MOST)
    try:
        await edit_event(web.database, visitor.actor, page.club.id, found.id, form.fields, seen)
    except (Invalid, Conflict) as error:
        return _editor(request, web, page, found, form, seen=seen, status=error.status, refused=error)
    return go_to(page.path(f"events/{encode_id(found.id)}"))


def _stepped(given: Mapping[str, str]) -> Mapping[str, str]:
    if given.get("step") == "second":
        return {**given, "second": "" if given.get("second") == "yes" else "yes"}
    return given


def _editor(
    request: PageRequest,
    web: Web,
    page: ClubPage,
    found: EventView | None,
    form: EventForm,
    *,
    seen: int | None = None,
    status: int = 200,
    refused: LastcallError | None = None,
) -> Response[str]:
    fresh = refused.fresh if isinstance(refused, Conflict) and isinstance(refused.fresh, EventView) else None
    zoned = zoned_of(request, web, page)
    if refused is not None and refused.field:
        form = replace(form, problems={**form.problems, refused.field: refused.sentence})
    return web.pages.show(
        request,
        "event_edit.html",
        page.place(SECTION),
        page.now,
        status=status,
        event=found,
        form=form,
        seen=(found.revision if found else 0) if seen is None else seen,
        zones=zone_choices(form.zone, page.club.zone, own_zone(zoned.zone)),
        refused=refused,
        fresh=fresh,
        fresh_words=time_words(fresh.time, zoned, fresh.zone) if fresh else "",
    )


def _review(
    request: PageRequest,
    web: Web,
    page: ClubPage,
    found: EventView | None,
    form: EventForm,
    given: Mapping[str, str],
    touched: list[tuple[Entry, Touched]],
    *,
    is_cut: bool,
) -> Response[str]:
    """``is_cut``: more may be touched than was looked at."""
    assert form.fields is not None
    zoned = zoned_of(request, web, page)
    return web.pages.show(
        request,
        "event_review.html",
        page.place(SECTION),
        page.now,
        event=found,
        form=form,
        seen=given.get("seen", "0"),
        publish=given.get("publish", ""),
        before=time_words(found.time, zoned, found.zone) if found else "",
        after=time_words(form.fields.time, zoned, form.zone),
        touched=touched,
        is_cut=is_cut,
    )


HANDLERS = (new_event, create, open_event, save_event)
