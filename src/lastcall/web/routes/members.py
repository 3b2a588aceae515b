"""Members: the people of the group from fresh reads, and what is begun from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Redirect

from lastcall.connections.evidence import protected_people
from lastcall.connections.queries import ConnectionCard, connection_card
from lastcall.db.ids import encode_id
from lastcall.db.transaction import Reader
from lastcall.errors import Conflict, Invalid, LastcallError, NotAllowed, NotFound, TooFast
from lastcall.operations.kinds import KINDS
from lastcall.operations.kinds.kind import Kind
from lastcall.operations.services.asked import permission_missing
from lastcall.operations.signals import TOPIC
from lastcall.reads.asking import request_read
from lastcall.reads.signals import TOPIC as READS
from lastcall.web.access import Access, Visitor, access
from lastcall.web.awaited import Awaited, look, nonce_of
from lastcall.web.club import ClubPage, club_page
from lastcall.web.compose.form import read_form, review_of
from lastcall.web.compose.review import new_request_key
from lastcall.web.compose.show import show_form, show_review
from lastcall.web.looks import KINDS as LOOKS
from lastcall.web.looks import obstacle
from lastcall.web.members.recent import Recent, recent_actions
from lastcall.web.members.rows import Row, rows_of
from lastcall.web.members.tabs import (
    ACTIONS,
    BUTTONS,
    BY_ID,
    LISTS,
    PAGE,
    Tab,
    allowed,
    first_tab,
    kinds_by_id,
    lists_for,
    tab_of_read,
)
from lastcall.web.members.where import Where, where_asked, where_read
from lastcall.web.pages import PageRequest, go_to, is_fragment, joined_fields
from lastcall.web.room import Web

SAID = {
    "nobody": Invalid(
        "nobody_ticked", "Nobody is ticked.", advice="Tick whom it is about, then press again."
    ),
    "role": Invalid("role_missing", "No role is chosen.", advice="Choose the role, then press again."),
}
"""What was wrong with a form of this page, by what the address says of it."""


@dataclass(frozen=True)
class MembersPage:
    page: ClubPage
    card: ConnectionCard | None
    seen: str
    reads_seen: str
    recent: Recent


async def _open(web: Web, visitor: Visitor, slug: str) -> MembersPage:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        card = await connection_card(tx, page.club.id)
        # Before anything is looked at, so that what happens meanwhile is told.
        seen, reads_seen = (web.live.mark((page.club.id, topic)) for topic in (TOPIC, READS))
        return MembersPage(page, card, seen, reads_seen, await recent_actions(tx, visitor, page, card))


def _tab(page: ClubPage, name: str) -> Tab:
    """The list in the address. One that the reader may not open is refused, one that is none is unknown."""
    tab = LISTS.get(name)
    if tab is None:
        raise NotFound("not_found", "There is no such list.")
    if not page.standing.holds(tab.permission):
        raise permission_missing(tab.permission)
    return tab


@get("/c/{slug:str}/members", opt=access(Access.STAFF))
async def members(
    web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Redirect:
    """The first list that the visitor may open."""
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    first = first_tab(page.standing)
    if first is None:
        raise NotAllowed(
            "permission_missing",
            "Members needs a permission that none of your roles has.",
            advice="Ask the owner of the club for a role that may see members, requests, invitations or bans.",
        )
    return go_to(page.path(f"members/{first}"))


@get("/c/{slug:str}/members/recent", opt=access(Access.STAFF))
async def recent(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Response[str]:
    """The list of recent actions alone, for the page that it stands on; with the names of the read beside it."""
    opened = await _open(web, visitor, slug)
    read_id = request.query_params.get("read", "")
    async with web.database.read() as tx:
        found = await look(tx, web, visitor, opened.page, opened.card, read_id)
    tab = None if found.read is None else tab_of_read(found.read.kind.name)
    rows = [] if tab is None else rows_of(found, tab, opened.card, opened.recent, {})
    return web.pages.show(
        request,
        "members_recent.html",
        opened.page.place("members"),
        opened.page.now,
        **_recent(opened, rows, read_id),
    )


@get("/c/{slug:str}/members/actions", opt=access(Access.STAFF))
async def by_id(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Response[str]:
    """People by their ids, for whoever may act and not look."""
    opened = await _open(web, visitor, slug)
    kinds = kinds_by_id(opened.page.standing)
    if not kinds:
        raise NotAllowed(
            "permission_missing",
            "None of your roles allows an action about the group's people.",
            advice="Ask the owner of the club for a role that has one.",
        )
    return web.pages.show(
        request,
        "members.html",
        opened.page.place("members"),
        opened.page.now,
        tab=ACTIONS,
        label="Actions",
        about="For people whose VRChat user id you have. Nothing is read from VRChat for it.",
        said=SAID.get(request.query_params.get("said", "")),
        people="",
        **_frame(opened, kinds),
        **_recent(opened),
    )


@get("/c/{slug:str}/members/{tab:str}", opt=access(Access.STAFF))
async def people(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    tab: FromPath[str],
) -> Response[str] | Redirect:
    """One list. Opening it asks VRChat and goes on to the read; an address that names a read shows that one, and asks
    nothing."""
    opened = await _open(web, visitor, slug)
    shown = _tab(opened.page, tab)
    where = where_asked(request, tab)
    read_id = request.query_params.get("read", "")
    if read_id:
        async with web.database.read() as tx:
            found = await look(tx, web, visitor, opened.page, opened.card, read_id)
            protected = await _protected(tx, opened)
        if found.read is not None and found.read.kind.name not in shown.reads:
            found = replace(found, read=None)
        return _show(
            request,
            web,
            opened,
            shown,
            where,
            found,
            rows_of(found, shown, opened.card, opened.recent, protected),
        )
    try:
        where.check()
        asked = await request_read(web.database, visitor.actor, opened.page.club.id, *where.asks)
    except (Conflict, Invalid, TooFast) as error:
        return _show(request, web, opened, shown, where, None, (), problem=error)
    return go_to(where.address(opened.page, read=encode_id(asked.id)))


@post("/c/{slug:str}/members/actions/review", opt=access(Access.STAFF), status_code=200)
async def review_by_id(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Response[str] | Redirect:
    fields = await joined_fields(request)
    kind = _kind(fields.get("act", ""), BY_ID)
    given = {"people": fields.get("people", ""), "role": fields.get("role", "")}
    return await _review(request, web, visitor, slug, kind, given)


@post("/c/{slug:str}/members/{tab:str}/review", opt=access(Access.STAFF), status_code=200)
async def review(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    tab: FromPath[str],
) -> Response[str] | Redirect:
    """Go on to the review with whoever was ticked, or stands beside the button, by the names that were read."""
    fields = await joined_fields(request)
    opened = await _open(web, visitor, slug)
    shown = _tab(opened.page, tab)
    act, _, single = fields.get("act", "").partition(" ")
    kind = _kind(act, shown.single if single else shown.ticked)
    chosen = [single] if single else fields.get("people", "").split()
    async with web.database.read() as tx:
        found = await look(tx, web, visitor, opened.page, opened.card, fields.get("read", ""))
        protected = await _protected(tx, opened)
    where = Where(tab, ticks=tuple(chosen)) if found.read is None else where_read(found.read, tuple(chosen))
    read_id = fields.get("read", "")
    if where is None or where.tab != tab:
        raise Invalid("form_incomplete", "This form is not complete.", advice="Open the list again.")
    if not found.is_fresh:
        return go_to(where.address(opened.page, read=read_id))
    rows = {row.user_id: row for row in rows_of(found, shown, opened.card, opened.recent, protected)}
    named = [rows[user_id] for user_id in chosen if user_id in rows and not rows[user_id].protected]
    if not named:
        return go_to(where.address(opened.page, read=read_id, said="nobody"))
    if kind.changes_role and not fields.get("role"):
        return go_to(where.address(opened.page, read=read_id, said="role"))
    given = {
        "people": "\n".join(row.line for row in named),
        "role": fields.get("role", ""),
        "read": read_id,
    }
    return await _review(request, web, visitor, slug, kind, given)


async def _review(
    request: PageRequest, web: Web, visitor: Visitor, slug: str, kind: Kind[Any], given: dict[str, str]
) -> Response[str]:
    form = await read_form(web, visitor, slug, kind.name, given)
    if form.problem_count:
        return show_form(request, web, form, status=Invalid.status)
    return await show_review(request, web, form, await review_of(web, form, new_request_key()))


def _kind(name: str, of: Sequence[str]) -> Kind[Any]:
    """The kind that a button named. Raises ``Invalid`` for a button that is none of the page's."""
    if name not in of:
        raise Invalid("form_incomplete", "This form is not complete.", advice="Open the list again.")
    return KINDS[name]


async def _protected(tx: Reader, opened: MembersPage) -> dict[str, str]:
    card = opened.card
    return {} if card is None else await protected_people(tx, opened.page.club.id, card.connection_id)


def _frame(opened: MembersPage, kinds: Sequence[Kind[Any]]) -> dict[str, Any]:
    """What every tab shows around its own. ``kinds`` are those whose buttons it has for several people."""
    page, card = opened.page, opened.card
    roles = () if card is None else card.roles
    return {
        "lists": lists_for(page.standing),
        "by_id": kinds_by_id(page.standing),
        "looks": LOOKS,
        "buttons": BUTTONS,
        "takes_role": any(kind.changes_role for kind in kinds),
        "roles": [role for role in roles if page.standing.may_assign(role.id)],
        "connection": card,
        "obstacle": obstacle(card.obstacle) if card else None,
    }


def _recent(opened: MembersPage, rows: Sequence[Row] = (), read_id: str = "") -> dict[str, Any]:
    """The recent actions; those about people of the list beside them are shown by name."""
    return {
        "recent": opened.recent.entries,
        "seen": opened.seen,
        "names": {row.user_id.lower(): row.name for row in rows},
        "named_by": read_id,
    }


def _show(
    request: PageRequest,
    web: Web,
    opened: MembersPage,
    tab: Tab,
    where: Where,
    found: Awaited | None,
    rows: Sequence[Row],
    *,
    problem: LastcallError | None = None,
) -> Response[str]:
    """The list, or the part of it that our script asked for. ``found`` is None where nothing could be asked."""
    page = opened.page
    ticked = allowed(page.standing, tab.ticked)
    read = None if found is None else found.read
    newer = where.page_at(where.offset - PAGE if where.offset else None)
    older = where.page_at(None if read is None else read.next_offset)
    return web.pages.show(
        request,
        "members_list.html" if is_fragment(request) else "members.html",
        page.place("members"),
        page.now,
        status=problem.status if isinstance(problem, Invalid | TooFast) else 200,
        tab=tab.name,
        label=tab.label,
        about=tab.about,
        list=tab,
        search=where.search,
        offset=where.offset,
        ticks=where.ticks,
        awaited=found,
        nonce=nonce_of(request),
        reads_seen=opened.reads_seen,
        problem=problem,
        said=SAID.get(request.query_params.get("said", "")),
        rows=rows,
        begin=tab.begin and KINDS[tab.begin].words.label,
        single_kinds=allowed(page.standing, tab.single),
        ticked_kinds=ticked,
        refresh=where.address(page),
        newer=newer and newer.address(page),
        older=older and older.address(page),
        **_frame(opened, ticked),
        **_recent(opened, rows, "" if found is None else found.read_id),
    )


HANDLERS = (members, recent, by_id, people, review_by_id, review)
