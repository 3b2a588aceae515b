"""Edit one pending action: a form made from the revision that was seen, a review, and the saving of just that.

Whatever happens to the action meanwhile, an open editor keeps the revision it was opened with (EDT-03); beside it
stands that it moved on, and how it is now.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from zoneinfo import ZoneInfo

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.response import Redirect

from lastcall.connections.queries import ConnectionCard, connection_card
from lastcall.db.ids import encode_id
from lastcall.errors import Conflict, Invalid, LastcallError, NotAllowed, NotFound
from lastcall.local_time import zone_names
from lastcall.operations.queries import operation
from lastcall.operations.services.cancel import require_theirs
from lastcall.operations.services.edit import edit
from lastcall.operations.signals import TOPIC
from lastcall.operations.views import OperationView
from lastcall.web.access import Access, Visitor, access
from lastcall.web.club import ClubPage, club_page
from lastcall.web.compose.fields import Given, fields_for, is_required, read_given, values_of
from lastcall.web.compose.filled import Filled
from lastcall.web.compose.options import Options, read_options
from lastcall.web.compose.timing import CONFIRMING, Timing, read_timing, read_when, unchanged, when_of
from lastcall.web.fields import known_id, read_revision
from lastcall.web.looks import KINDS as LOOKS
from lastcall.web.pages import PageRequest, go_to, is_fragment, joined_fields
from lastcall.web.room import Web
from lastcall.web.scheduled import role_names, single


@dataclass(frozen=True)
class Editor(Filled):
    """An open editor. ``row`` is the action as it is now, ``opened`` the revision that the editor was made from."""

    page: ClubPage
    card: ConnectionCard | None
    row: OperationView
    opened: int
    given: Given
    timing: Timing
    options: Options
    seen: str

    @property
    def is_current(self) -> bool:
        return self.row.revision == self.opened and self.row.is_editable


@get("/c/{slug:str}/scheduled/{operation_id:str}/edit", opt=access(Access.STAFF))
async def open_editor(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    operation_id: FromPath[str],
    opened: FromQuery[int | None] = None,
) -> Response[str]:
    """A fresh editor; for the script that watches an open one, whether that still is of the newest revision."""
    editor = await _read(request, web, visitor, slug, operation_id, opened=opened)
    if is_fragment(request):
        return _show(request, web, "edit_live.html", editor)
    return _show(request, web, "edit.html" if editor.is_current else "edit_stale.html", editor)


@post("/c/{slug:str}/scheduled/{operation_id:str}/edit/review", opt=access(Access.STAFF), status_code=200)
async def review_edit(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    operation_id: FromPath[str],
) -> Response[str]:
    """What the edit would change, with the exact time."""
    fields = await joined_fields(request)
    if fields.get("step") == "second":
        fields["second"] = "" if fields.get("second") else "yes"
    editor = await _read(request, web, visitor, slug, operation_id, fields=fields)
    if not editor.is_current:
        return _show(request, web, "edit_stale.html", editor, status=Conflict.status)
    if fields.get("step") == "change":
        return _show(request, web, "edit.html", editor)
    if editor.problem_count:
        return _show(request, web, "edit.html", editor, status=Invalid.status)
    return _show(request, web, "edit_review.html", editor)


@post("/c/{slug:str}/scheduled/{operation_id:str}/edit", opt=access(Access.STAFF))
async def save(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    operation_id: FromPath[str],
) -> Response[str] | Redirect:
    """Save what was reviewed, at the revision that the editor was opened with."""
    fields = await joined_fields(request)
    editor = await _read(
        request, web, visitor, slug, operation_id, fields=fields, reviewed=fields.get("reviewed", "")
    )
    if not editor.is_current:
        return _show(request, web, "edit_stale.html", editor, status=Conflict.status)
    if editor.problem_count or editor.timing.schedule is None:
        return _show(request, web, "edit.html", editor, status=Invalid.status)
    try:
        await edit(
            web.database,
            visitor.actor,
            editor.page.club.id,
            editor.row.id,
            editor.opened,
            editor.given.payloads(editor.row.kind)[0],
            editor.timing.schedule,
            confirm_banned=frozenset(fields.get("banned", "").split()),
        )
    except (NotFound, NotAllowed):
        raise
    except LastcallError as error:
        # As it is now: moved on meanwhile, or a time that is to be reviewed anew.
        again = await _read(request, web, visitor, slug, operation_id, fields=fields)
        if not again.is_current:
            return _show(request, web, "edit_stale.html", again, status=error.status)
        page = "edit.html" if again.problem_count else "edit_review.html"
        return _show(request, web, page, again, status=error.status, refused=error)
    return go_to(editor.page.path(f"scheduled/{encode_id(editor.row.id)}"))


async def _read(
    request: PageRequest,
    web: Web,
    visitor: Visitor,
    slug: str,
    operation_id: str,
    *,
    fields: Mapping[str, str] | None = None,
    opened: int | None = None,
    reviewed: str = "",
) -> Editor:
    """The editor that a form was sent from; without a form a fresh one, of the action as it is."""
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        seen = web.live.mark((page.club.id, TOPIC))
        row = await operation(tx, page.standing, visitor.actor, page.club.id, known_id(operation_id))
        require_theirs(page.standing, visitor.actor, row, "edit")
        card = await connection_card(tx, page.club.id)
        if fields is None:
            zone = web.pages.zone(request, page.place("scheduled"))
            when = when_of(row.schedule_kind, row.due_at, row.event_id, row.offset, zone)
            given, timing = Given(values_of(row.kind, row.payload)), Timing(when)
        else:
            given, when = read_given(row.kind, fields, most=1), read_when(fields)
            opened = read_revision(fields)
            timing = await read_timing(
                tx,
                page.standing,
                page.club.id,
                when,
                page.now,
                reviewed=reviewed,
                tolerance=CONFIRMING - timedelta(seconds=1),
            )
            zone = ZoneInfo(when.zone if when.zone in zone_names() else "UTC")
            stored = when_of(row.schedule_kind, row.due_at, row.event_id, row.offset, zone)
            timing = unchanged(timing, stored, row.due_at, row.offset, is_reviewed=bool(reviewed))
        options = await read_options(tx, page, visitor.actor, row.kind, card, when.event)
    return Editor(page, card, row, row.revision if opened is None else opened, given, timing, options, seen)


def _show(
    request: PageRequest,
    web: Web,
    template: str,
    editor: Editor,
    *,
    status: int = 200,
    refused: LastcallError | None = None,
) -> Response[str]:
    row = editor.row
    fields = fields_for(row.kind)
    return web.pages.show(
        request,
        template,
        editor.page.place("scheduled"),
        editor.page.now,
        status=status,
        editor=editor,
        seen=editor.seen,
        kind=row.kind,
        look=LOOKS[row.kind.name],
        entry=single(row, role_names(editor.card), time=row.due_at),
        fields=fields,
        required={one.name for one in fields if is_required(row.kind, one)},
        now_given=Given(values_of(row.kind, row.payload)),
        options=editor.options,
        refused=refused,
        banned=bool(refused and refused.code == "target_banned"),
        is_single=True,
    )


HANDLERS = (open_editor, review_edit, save)
