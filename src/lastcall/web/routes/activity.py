"""The club's log: who did what, and when. For its owner and whoever manages staff."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from urllib.parse import urlencode

from litestar import Response, get
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.response import Stream

from lastcall.clubs.activity_log import (
    STAFF_FAMILIES,
    ActivityFilters,
    ExportForm,
    activity_page,
    export_activity,
)
from lastcall.clubs.queries import roster, staff_roles
from lastcall.db.cursor import read_cursor
from lastcall.db.ids import decode_id
from lastcall.errors import Invalid, NotFound
from lastcall.web.access import Access, Visitor, access
from lastcall.web.activity_words import FAMILIES, activity_words
from lastcall.web.club import ClubPage, club_page
from lastcall.web.pages import PageRequest
from lastcall.web.paging import older
from lastcall.web.room import Web

FILTERS = ("family", "actor", "since", "until")
LISTING = "activity"
MEDIA = {ExportForm.CSV: "text/csv", ExportForm.JSON_LINES: "application/x-ndjson"}


@get("/c/{slug:str}/log", opt=access(Access.STAFF))
async def log_page(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    after: FromQuery[str] = "",
) -> Response[str]:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        filters = _filters(request, web, page)
        found = await activity_page(
            tx, visitor.actor, page.club.id, filters, after=read_cursor(LISTING, after or None)
        )
        staff = await roster(tx, visitor.actor, page.club.id)
        roles = await staff_roles(tx, visitor.actor, page.club.id)
    given = {name: request.query_params.get(name, "") for name in FILTERS}
    kept = urlencode({name: value for name, value in given.items() if value})
    return web.pages.show(
        request,
        "log.html",
        page.place("staff"),
        page.now,
        entries=found.entries,
        older=older(page.path("log"), LISTING, found.next, **given),
        is_first=not after,
        given=given,
        is_filtered=bool(kept),
        exports=[(form, f"{page.path('log')}/{form.value}?{kept}") for form in ExportForm],
        families={
            family: words
            for family, words in FAMILIES.items()
            if page.standing.is_owner or family in STAFF_FAMILIES
        },
        people=staff.members,
        role_names={str(role.id): role.name for role in roles},
        words=activity_words,
    )


@get("/c/{slug:str}/log/{form:str}", opt=access(Access.STAFF))
async def export(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    form: FromPath[str],
) -> Stream:
    """What the filters show, as a file. It is streamed: a long log is never held at once."""
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        filters = _filters(request, web, page)
    if form not in {known.value for known in ExportForm}:
        raise NotFound("not_found", "There is no such page.")
    chosen = ExportForm(form)
    pieces = await export_activity(web.database, visitor.actor, page.club.id, chosen, filters)
    return Stream(
        pieces,
        media_type=MEDIA[chosen],
        headers={
            "Cache-Control": "no-store",
            "Content-Disposition": f'attachment; filename="{page.club.slug}-log.{chosen.value}"',
        },
    )


def _filters(request: PageRequest, web: Web, page: ClubPage) -> ActivityFilters:
    """What the address asks for. Days are of the viewer's zone; the last one is meant as a whole."""
    query = request.query_params
    zone = web.pages.zone(request, page.place("staff"))

    def midnight(name: str, days: int) -> datetime | None:
        text = query.get(name)
        if not text:
            return None
        try:
            return datetime.combine(date.fromisoformat(text) + timedelta(days=days), time(), zone)
        except (ValueError, OverflowError) as error:
            raise Invalid(
                "date_malformed", "This is not a day.", advice="Choose one like 2026-05-31.", field=name
            ) from error

    actor = query.get("actor")
    return ActivityFilters(
        family=query.get("family") or None,
        actor_id=decode_id(actor) if actor else None,
        since=midnight("since", 0),
        until=midnight("until", 1),
    )


HANDLERS = (log_page, export)
