"""Scheduled: what will be sent and what became of it, live; and the one thing to do about it, cancel."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.response import Redirect, Stream

from lastcall.connections.queries import ConnectionCard, connection_card
from lastcall.db.cursor import Cursor, cut, read_cursor
from lastcall.db.ids import decode_id, encode_id
from lastcall.db.transaction import Reader
from lastcall.errors import Conflict, Invalid, NotFound
from lastcall.operations.kinds import KINDS, kinds_visible_to
from lastcall.operations.machine import TERMINAL, State
from lastcall.operations.queries import (
    Filter,
    RequestRollup,
    history,
    operation,
    request_operations,
    request_rollups,
    upcoming,
)
from lastcall.operations.services.cancel import cancel
from lastcall.operations.signals import TOPIC
from lastcall.operations.views import OperationView
from lastcall.people.sessions import actor_of_session
from lastcall.web.access import Access, Visitor, access
from lastcall.web.club import ClubPage, club_page
from lastcall.web.looks import obstacle
from lastcall.web.pages import PageRequest, form_fields, go_to, is_fragment
from lastcall.web.room import Web
from lastcall.web.scheduled import (
    Names,
    batch,
    days,
    read_place,
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
UNKNOWN_MOST = 20


def role_names(card: ConnectionCard | None) -> Names:
    return {} if card is None else {role.id.lower(): role.name for role in card.roles if role.name}


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
        unknown_first=unknown[0] if unknown else None,
        lately=[single(row, names, time=row.completed_at or row.due_at) for row in lately],
        older=write_place(rows[-1]) if more else None,
        is_first=start is None,
        connection=card,
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
) -> Response[str]:
    """What is over, newest first, filtered on the server, each page by key."""
    start = read_cursor(HISTORY, after or None)
    states = _states(outcome)
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
            Filter(kinds=kinds, states=states),
            after=start,
            limit=PAGE + 1,
        )
        card = await connection_card(tx, club_id)
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
        connection=card,
        obstacle=obstacle(card.obstacle) if card else None,
        title=batch(rows[0], rollup, names, time=rollup.due_at).title,
    )


@get("/c/{slug:str}/scheduled/{operation_id:str}/cancel", opt=access(Access.STAFF))
async def ask_cancel(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    operation_id: FromPath[str],
    revision: FromQuery[int],
) -> Response[str]:
    """The question before a cancel. It keeps the revision that the person saw (EDT-07)."""
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        row = await operation(tx, page.standing, visitor.actor, page.club.id, known_id(operation_id))
        card = await connection_card(tx, page.club.id)
    if row.revision != revision or not row.is_cancellable:
        raise Conflict("revision_stale", "Refresh to continue.", advice=_moved_on(row))
    return web.pages.show(
        request,
        "cancel_ask.html" if is_fragment(request) else "cancel_page.html",
        page.place("scheduled"),
        page.now,
        entry=single(row, role_names(card), time=row.due_at),
    )


def _moved_on(row: OperationView) -> str:
    if row.state in TERMINAL or row.state is State.SUBMITTED:
        return f"It is too late to cancel this: {row.state.label.lower()}."
    if not row.is_cancellable:
        return "Somebody else queued this, and none of your roles lets you cancel it."
    return "It was edited since the page was made."


@post("/c/{slug:str}/scheduled/{operation_id:str}/cancel", opt=access(Access.STAFF))
async def do_cancel(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    operation_id: FromPath[str],
) -> Redirect:
    fields = await form_fields(request)
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    revision = fields.get("revision", "")
    if not revision.isascii() or not revision.isdigit():
        raise Invalid("revision_missing", "This form names no revision.", advice="Open the action again.")
    row = await cancel(web.database, visitor.actor, page.club.id, known_id(operation_id), int(revision[:9]))
    if row.request_size > 1:
        return go_to(page.path(f"requests/{encode_id(row.request_id)}"))
    return go_to(page.path("scheduled"))


@get("/c/{slug:str}/live/scheduled", opt=access(Access.STAFF))
async def live_scheduled(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    seen: FromQuery[str] = "",
) -> Stream:
    """The event stream behind the pages of this file."""
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    return event_stream(request, web, visitor, (page.club.id, TOPIC), seen)


def event_stream(
    request: PageRequest, web: Web, visitor: Visitor, channel: tuple[UUID | None, str], seen: str
) -> Stream:
    """A stream on ``channel`` for as long as the visitor's session lives. A broken one says where it was."""
    session = visitor.session or ""

    async def is_welcome() -> bool:
        return await actor_of_session(web.database, session) is not None

    last = request.headers.get("last-event-id", seen)
    return Stream(
        web.live.stream(channel, last, is_welcome),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


def known_id(text: str) -> UUID:
    """An id from the address; one that is none is as unknown as one that nobody has."""
    try:
        return decode_id(text)
    except Invalid as error:
        raise NotFound("not_found", "There is no such page.") from error


def _states(name: str | None) -> list[State] | None:
    if not name:
        return None
    if name not in TERMINAL:
        raise Invalid(
            "state_unknown", "There is no such state to filter by.", advice="Start at the first page."
        )
    return [State(name)]


def _known_kind(name: str) -> str:
    if name not in KINDS:
        raise Invalid(
            "kind_unknown", "There is no such kind to filter by.", advice="Start at the first page."
        )
    return name


HANDLERS = (scheduled, scheduled_history, request_page, ask_cancel, do_cancel, live_scheduled)
