"""Scheduled: what will be sent and what became of it, live, and what of it needs attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode
from uuid import UUID

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.response import Redirect

from lastcall.connections.queries import connection_card
from lastcall.db.cursor import Cursor, cut, read_cursor
from lastcall.db.transaction import Reader
from lastcall.errors import Invalid
from lastcall.events.queries import EventView, past_events, upcoming_events
from lastcall.operations.kinds import KINDS, kinds_visible_to
from lastcall.operations.machine import TERMINAL, State
from lastcall.operations.notices import notices
from lastcall.operations.queries import (
    Filter,
    RequestRollup,
    history,
    request_operations,
    request_rollups,
    subject_in,
    upcoming,
)
from lastcall.operations.services.dismiss import dismiss_notices
from lastcall.operations.signals import TOPIC
from lastcall.operations.views import OperationView
from lastcall.web.access import Access, Visitor, access
from lastcall.web.club import ClubPage, club_page
from lastcall.web.connection_words import STATES as CONNECTION_STATES
from lastcall.web.fields import known_id
from lastcall.web.looks import obstacle
from lastcall.web.pages import PageRequest, go_to, is_fragment, joined_fields
from lastcall.web.room import Web
from lastcall.web.scheduled import (
    batch,
    days,
    notice_entry,
    read_place,
    role_names,
    single,
    tally_of,
    upcoming_entries,
    write_place,
)
from lastcall.web.times import Zoned

PAGE = 100
HISTORY = "history"
"""The list of what is over, in its cursors."""
LATELY = 6
NOTHING = ""
"""A subject that no action has."""
UNKNOWN_MOST = 20
NOTICES_MOST = 10
EVENTS_MOST = 50
"""Events that the history can be filtered by: so many of the next, and of the last."""


async def _rollups(tx: Reader, page: ClubPage, rows: list[OperationView]) -> Mapping[UUID, RequestRollup]:
    batches = {row.request_id for row in rows if row.request_size > 1}
    return await request_rollups(tx, page.standing, page.club.id, batches) if batches else {}


@get("/c/{slug:str}/scheduled", opt=access(Access.STAFF))
async def scheduled(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    after: FromQuery[str] = "",
) -> Response[str]:
    """The agenda: everything that is not over, by due time, batches as one row each."""
    start, shown_before = read_place(after)
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        club_id = page.club.id
        seen = web.live.mark((club_id, TOPIC))
        reader = (page.standing, visitor.actor, club_id)
        rows = await upcoming(tx, *reader, after=start, limit=PAGE + 1)
        unknown = await history(tx, *reader, Filter(states=[State.INDETERMINATE]), limit=UNKNOWN_MOST)
        lately = await history(tx, *reader, limit=LATELY)
        attention = [] if start else await notices(tx, *reader, limit=NOTICES_MOST)
        card = await connection_card(tx, club_id)
        more = len(rows) > PAGE
        rows = rows[:PAGE]
        rollups = await _rollups(tx, page, rows)
    names = role_names(card)
    zoned = Zoned(web.pages.zone(request, page.place("")), page.now)
    entries = [entry for entry in upcoming_entries(rows, rollups, names) if entry.request_id != shown_before]
    return web.pages.show(
        request,
        "scheduled_live.html" if is_fragment(request) else "scheduled.html",
        page.place("scheduled"),
        page.now,
        seen=seen,
        tab="upcoming",
        days=days(entries, zoned),
        next_due=next((entry.time for entry in entries if entry.time > page.now), None),
        unknown_count=len(unknown),
        unknown_most=UNKNOWN_MOST,
        attention=[notice_entry(one) for one in attention],
        attention_most=NOTICES_MOST,
        lately=[single(row, names, time=row.completed_at or row.due_at) for row in lately],
        older=write_place(rows[-1]) if more else None,
        is_first=start is None,
        connection=card,
        connection_words=CONNECTION_STATES,
        obstacle=obstacle(card.obstacle) if card else None,
        may_queue=bool(kinds_visible_to(page.standing)),
    )


@get("/c/{slug:str}/scheduled/history", opt=access(Access.STAFF))
async def scheduled_history(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    after: FromQuery[str] = "",
    outcome: FromQuery[str | None] = None,
    kind: FromQuery[str | None] = None,
    event: FromQuery[str] = "",
    search: FromQuery[str] = "",
) -> Response[str]:
    """What is over, newest first, filtered on the server, each page by key."""
    start = read_cursor(HISTORY, after or None)
    states = _states(outcome)
    subject, problem = _subject(search)
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        club_id = page.club.id
        seen = web.live.mark((club_id, TOPIC))
        kinds = [_known_kind(kind)] if kind else None
        rows = await history(
            tx,
            page.standing,
            visitor.actor,
            club_id,
            Filter(kinds=kinds, states=states, event_id=known_id(event) if event else None, subject=subject),
            after=start,
            limit=PAGE + 1,
        )
        card = await connection_card(tx, club_id)
        events = await _events(tx, page)
    shown, older = cut(rows, PAGE, HISTORY, lambda row: Cursor(row.completed_at or row.due_at, row.id))
    zoned = Zoned(web.pages.zone(request, page.place("")), page.now)
    entries = [single(row, role_names(card), time=row.completed_at or row.due_at) for row in shown]
    return web.pages.show(
        request,
        "history_live.html" if is_fragment(request) else "history.html",
        page.place("scheduled"),
        page.now,
        seen=seen,
        tab="history",
        days=days(entries, zoned),
        older=older,
        is_first=start is None,
        states=[one for one in State if one in TERMINAL],
        kinds=[KINDS[name] for name in kinds_visible_to(page.standing)],
        outcome=outcome or "",
        kind=kind or "",
        event=event,
        events=events,
        search=search,
        problem=problem,
        filters=_kept(outcome=outcome, kind=kind, event=event, search=search),
    )


@get("/c/{slug:str}/requests/{request_id:str}", opt=access(Access.STAFF))
async def request_page(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    request_id: FromPath[str],
) -> Response[str]:
    """One request with every target: how far it is, and what became of each."""
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        club_id = page.club.id
        seen = web.live.mark((club_id, TOPIC))
        rows = await request_operations(tx, page.standing, visitor.actor, club_id, known_id(request_id))
        rollup = (await request_rollups(tx, page.standing, club_id, [rows[0].request_id]))[rows[0].request_id]
        card = await connection_card(tx, club_id)
    names = role_names(card)
    return web.pages.show(
        request,
        "request_live.html" if is_fragment(request) else "request.html",
        page.place("scheduled"),
        page.now,
        seen=seen,
        rollup=rollup,
        tally=tally_of(rollup.counts),
        entries=[single(row, names, time=row.completed_at or row.due_at) for row in rows],
        is_cancellable=any(row.is_cancellable for row in rows),
        connection=card,
        obstacle=obstacle(card.obstacle) if card else None,
        title=batch(rows[0], rollup, names, time=rollup.due_at).title,
    )


@post("/c/{slug:str}/notices", opt=access(Access.STAFF))
async def dismiss(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
) -> Redirect:
    """Take notices out of one's own sight."""
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    fields = await joined_fields(request)
    await dismiss_notices(
        web.database, visitor.actor, page.club.id, [known_id(one) for one in fields.get("notice", "").split()]
    )
    return go_to(page.path("scheduled"))


def _states(name: str | None) -> list[State] | None:
    if not name:
        return None
    if name not in TERMINAL:
        raise Invalid(
            "state_unknown", "There is no such state to filter by.", advice="Start at the first page."
        )
    return [State(name)]


def _subject(search: str) -> tuple[str | None, str | None]:
    """The id that is searched for, or what is wrong with it."""
    if not search.strip():
        return None, None
    try:
        return subject_in(search), None
    except Invalid as error:
        return NOTHING, f"{error.sentence} {error.advice}"


def _kept(**filters: str | None) -> str:
    return urlencode({name: value for name, value in filters.items() if value})


async def _events(tx: Reader, page: ClubPage) -> Sequence[EventView]:
    reader = (tx, page.standing, page.club.id)
    upcoming_first = await upcoming_events(*reader, limit=EVENTS_MOST)
    return (*upcoming_first.events, *(await past_events(*reader, limit=EVENTS_MOST)).events)


def _known_kind(name: str) -> str:
    if name not in KINDS:
        raise Invalid(
            "kind_unknown", "There is no such kind to filter by.", advice="Start at the first page."
        )
    return name


HANDLERS = (scheduled, scheduled_history, request_page, dismiss)
