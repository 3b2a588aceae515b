"""One action: what it does, what has happened to it, and what somebody found out when its outcome is unknown."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Redirect

from lastcall.connections.queries import ConnectionCard, connection_card
from lastcall.db.ids import encode_id
from lastcall.db.transaction import Reader
from lastcall.errors import Conflict, Invalid, LastcallError
from lastcall.events.queries import EventView, event
from lastcall.operations.machine import State
from lastcall.operations.queries import operation
from lastcall.operations.revisions import Happening, Moment, Revision, history_of, timeline
from lastcall.operations.services.settle import settle_unknown
from lastcall.operations.settling import EvidenceItem, Finding, Verdict, evidence_of, findings_of
from lastcall.operations.signals import TOPIC
from lastcall.operations.views import OperationView
from lastcall.web.access import Access, Visitor, access
from lastcall.web.club import ClubPage, club_page
from lastcall.web.compose.fields import Given, fields_for, values_of
from lastcall.web.compose.options import known_roles
from lastcall.web.fields import known_id, read_revision
from lastcall.web.looks import Look, state_look, why
from lastcall.web.pages import PageRequest, go_to, is_fragment, joined_fields
from lastcall.web.room import Web
from lastcall.web.scheduled import role_names, single


@dataclass(frozen=True)
class Step:
    """One entry of the timeline in words."""

    moment: Moment
    words: str
    look: Look


@dataclass(frozen=True)
class ActionPage:
    page: ClubPage
    card: ConnectionCard | None
    row: OperationView
    steps: list[Step]
    revisions: list[Revision]
    event: EventView | None
    evidence: list[EvidenceItem]
    findings: list[Finding]


def _step(moment: Moment) -> Step:
    by = moment.by_name
    match moment.what:
        case Happening.QUEUED:
            return Step(moment, f"Queued by {by}", Look("", "plus", "Queued"))
        case Happening.EDITED:
            return Step(moment, f"Edited by {by}, revision {moment.revision}", Look("", "more", "Edited"))
        case Happening.SUBMITTED:
            return Step(moment, "Permitted and handed to the collector", Look("live", "turn", "Sent"))
        case Happening.ENDED:
            assert moment.state is not None
            look = state_look(moment.state, moment.code)
            return Step(moment, f"{look.word}{f' by {by}' if by else ''}", look)
        case Happening.REPORTED_LATE:
            assert moment.state is not None
            look = state_look(moment.state, moment.code)
            return Step(moment, f"Its collector reported later: {look.word}", look)


async def read_event_of(tx: Reader, page: ClubPage, event_id: UUID | None) -> EventView | None:
    """The event, as far as it is there and the reader may know of it."""
    if event_id is None:
        return None
    try:
        return await event(tx, page.standing, page.club.id, event_id)
    except LastcallError:
        return None


async def _read(tx: Reader, visitor: Visitor, page: ClubPage, operation_id: UUID) -> ActionPage:
    reader = (tx, page.standing, visitor.actor, page.club.id, operation_id)
    row = await operation(*reader)
    is_unknown = row.state is State.INDETERMINATE
    return ActionPage(
        page,
        await connection_card(tx, page.club.id),
        row,
        [_step(moment) for moment in await timeline(*reader)],
        await history_of(*reader),
        await read_event_of(tx, page, row.event_id),
        await evidence_of(*reader) if is_unknown else [],
        await findings_of(*reader) if is_unknown else [],
    )


@get("/c/{slug:str}/scheduled/{operation_id:str}", opt=access(Access.STAFF))
async def action_page(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    operation_id: FromPath[str],
) -> Response[str]:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        seen = web.live.mark((page.club.id, TOPIC))
        found = await _read(tx, visitor, page, known_id(operation_id))
    return _show(request, web, found, seen)


@post("/c/{slug:str}/scheduled/{operation_id:str}/settle", opt=access(Access.STAFF))
async def settle(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    operation_id: FromPath[str],
) -> Response[str] | Redirect:
    """Record what somebody found out. The action itself stays as it is, and nothing is sent."""
    fields = await joined_fields(request)
    wanted = known_id(operation_id)
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    note, evidence = fields.get("note", ""), fields.get("evidence", "").splitlines()
    try:
        await settle_unknown(
            web.database,
            visitor.actor,
            page.club.id,
            wanted,
            _verdict(fields.get("verdict", "")),
            note,
            evidence,
            seen=read_revision(fields),
        )
    except (Conflict, Invalid) as error:
        async with web.database.read() as tx:
            seen = web.live.mark((page.club.id, TOPIC))
            found = await _read(tx, visitor, page, wanted)
        return _show(request, web, found, seen, note=note, chosen=evidence, problem=error)
    return go_to(page.path(f"scheduled/{encode_id(wanted)}"))


def _verdict(text: str) -> Verdict:
    try:
        return Verdict(text)
    except ValueError as error:
        raise Invalid(
            "verdict_missing", "Say whether it happened.", advice="Choose one of the two.", field="verdict"
        ) from error


def _show(
    request: PageRequest,
    web: Web,
    found: ActionPage,
    seen: str,
    *,
    note: str = "",
    chosen: list[str] | None = None,
    problem: LastcallError | None = None,
) -> Response[str]:
    row, page = found.row, found.page
    return web.pages.show(
        request,
        "action_live.html" if is_fragment(request) else "action.html",
        page.place("scheduled"),
        page.now,
        status=problem.status if problem else 200,
        seen=seen,
        row=row,
        entry=single(row, role_names(found.card), time=row.completed_at or row.due_at),
        fields=fields_for(row.kind),
        given=Given(values_of(row.kind, row.payload)),
        earlier=[(one, Given(values_of(row.kind, one.payload))) for one in found.revisions[1:]],
        options=known_roles(found.card),
        steps=found.steps,
        event=found.event,
        evidence=found.evidence,
        findings=found.findings,
        verdicts=list(Verdict),
        is_unknown=row.state is State.INDETERMINATE,
        late=why(row.code),
        note=note,
        chosen=chosen or [],
        problem=problem,
    )


HANDLERS = (action_page, settle)
