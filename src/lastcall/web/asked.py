"""The list of what was asked of the staff: approvals and decisions alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

from litestar import Response

from lastcall.clubs.permissions import Permission
from lastcall.db.cursor import Cursor, cut, read_cursor
from lastcall.db.transaction import Reader
from lastcall.decisions.listing import AskedView, Which
from lastcall.people.actor import Actor
from lastcall.web.access import Visitor
from lastcall.web.club import club_page
from lastcall.web.looks import Look
from lastcall.web.pages import PageRequest
from lastcall.web.room import Web

SECTION = "inbox"
_PER_PAGE = 50


class ReadPage(Protocol):
    """How a page of the list is read."""

    async def __call__(
        self,
        tx: Reader,
        actor: Actor,
        club_id: UUID,
        which: Which,
        *,
        after: Cursor | None = None,
        limit: int = 50,
    ) -> Sequence[AskedView]: ...


async def list_asked(
    request: PageRequest,
    web: Web,
    visitor: Visitor,
    slug: str,
    listing: str,
    read: ReadPage,
    *,
    shown: str,
    after: str,
    waiting: str,
    looks: Mapping[Any, Look],
) -> Response[str]:
    """The page of a list: what waits for whoever decides, else what they asked themselves.

    ``listing`` is its name in cursors, addresses and templates, and ``waiting`` the word for what waits."""
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        may_decide = page.standing.holds(Permission.DECIDE_APPROVALS)
        which = _which(shown) if may_decide else Which.MINE
        start = read_cursor(listing, after or None)
        found = await read(tx, visitor.actor, page.club.id, which, after=start, limit=_PER_PAGE + 1)
    rows, behind = cut(found, _PER_PAGE, listing, lambda one: one.cursor)
    lists = {Which.WAITING: waiting, Which.MINE: "Asked by me", Which.ALL: "All"}
    return web.pages.show(
        request,
        f"{listing}.html",
        page.place(SECTION),
        page.now,
        rows=rows,
        looks=looks,
        which=which,
        lists=lists if may_decide else {},
        behind=behind and f"{page.path(listing)}?shown={which}&after={behind}",
    )


def _which(wanted: str) -> Which:
    return Which(wanted) if wanted in set(Which) else Which.WAITING
