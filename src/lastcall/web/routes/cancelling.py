"""Stop what was not sent yet: one action, or what is left of a request. Each asks first."""

from __future__ import annotations

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.response import Redirect

from lastcall.connections.queries import connection_card
from lastcall.db.ids import encode_id
from lastcall.errors import Conflict
from lastcall.operations.machine import TERMINAL, UNSENT, State
from lastcall.operations.queries import operation, request_operations
from lastcall.operations.services.cancel import cancel, cancel_request
from lastcall.operations.views import OperationView
from lastcall.web.access import Access, Visitor, access
from lastcall.web.club import club_page
from lastcall.web.fields import known_id, read_revision
from lastcall.web.pages import PageRequest, form_fields, go_to
from lastcall.web.room import Web
from lastcall.web.scheduled import role_names, single


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
    return web.pages.ask(
        request,
        "cancel_ask.html",
        page.place("scheduled"),
        page.now,
        title="Cancel",
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
    row = await cancel(
        web.database, visitor.actor, page.club.id, known_id(operation_id), read_revision(fields, "revision")
    )
    if row.request_size > 1:
        return go_to(page.path(f"requests/{encode_id(row.request_id)}"))
    return go_to(page.path("scheduled"))


@get("/c/{slug:str}/requests/{request_id:str}/cancel", opt=access(Access.STAFF))
async def ask_cancel_request(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    request_id: FromPath[str],
) -> Response[str]:
    """The question before the rest of a request is cancelled, with every target that it would stop."""
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        rows = await request_operations(tx, page.standing, visitor.actor, page.club.id, known_id(request_id))
        card = await connection_card(tx, page.club.id)
    unsent = [row for row in rows if row.state in UNSENT]
    if not unsent:
        raise Conflict(
            "nothing_to_cancel", "Nothing of this request is left to cancel.", advice="Look at it again."
        )
    names = role_names(card)
    return web.pages.ask(
        request,
        "cancel_request_ask.html",
        page.place("scheduled"),
        page.now,
        title="Cancel",
        request_id=rows[0].request_id,
        entries=[single(row, names, time=row.due_at) for row in unsent],
        sent=sum(1 for row in rows if row.state is State.SUBMITTED),
        others=sum(1 for row in unsent if not row.is_cancellable),
    )


@post("/c/{slug:str}/requests/{request_id:str}/cancel", opt=access(Access.STAFF))
async def do_cancel_request(
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    request_id: FromPath[str],
) -> Redirect:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    done = await cancel_request(web.database, visitor.actor, page.club.id, known_id(request_id))
    return go_to(page.path(f"requests/{encode_id(done.request_id)}"))


HANDLERS = (ask_cancel, do_cancel, ask_cancel_request, do_cancel_request)
