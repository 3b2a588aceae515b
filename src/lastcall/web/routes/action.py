"""One action: what it does, what has happened to it, and what somebody found out when its outcome is unknown."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Redirect

from lastcall.connections.queries import ConnectionCard, connection_card
from lastcall.db.ids import encode_id
from lastcall.db.transaction import Reader
from lastcall.errors import Conflict, Invalid, LastcallError, TooFast
from lastcall.events.queries import EventView, event
from lastcall.operations.machine import State
from lastcall.operations.queries import operation
from lastcall.operations.revisions import Happening, Moment, Revision, history_of, timeline
from lastcall.operations.services.settle import settle_unknown
from lastcall.operations.settling import EvidenceItem, Finding, Verdict, evidence_of, findings_of
from lastcall.operations.signals import TOPIC
from lastcall.operations.telling import Look as Telling
from lastcall.operations.telling import evidence_for, looks_of
from lastcall.operations.views import OperationView
from lastcall.reads.asking import request_read
from lastcall.reads.signals import TOPIC as READS
from lastcall.web.access import Access, Visitor, access
from lastcall.web.awaited import Awaited, look
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
    tells: Collection[Telling]
    awaited: Awaited | None
    seen: str
    reads_seen: str


@dataclass(frozen=True)
class Typed:
    """What a person has filled in to record a finding. It stays while something is read for them."""

    verdict: str = ""
    note: str = ""
    chosen: Sequence[str] = ()


def _typed(fields: Mapping[str, str]) -> Typed:
    return Typed(fields.get("verdict", ""), fields.get("note", ""), fields.get("evidence", "").splitlines())


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


async def _read(
    tx: Reader, web: Web, visitor: Visitor, page: ClubPage, operation_id: UUID, read_id: str = ""
) -> ActionPage:
    """``read_id``: what somebody has read for a finding."""
    # Before anything is looked at, so that what happens meanwhile is told.
    seen, reads_seen = (web.live.mark((page.club.id, topic)) for topic in (TOPIC, READS))
    reader = (tx, page.standing, visitor.actor, page.club.id, operation_id)
    card = await connection_card(tx, page.club.id)
    row = await operation(*reader)
    is_unknown = row.state is State.INDETERMINATE
    return ActionPage(
        page,
        card,
        row,
        [_step(moment) for moment in await timeline(*reader)],
        await history_of(*reader),
        await read_event_of(tx, page, row.event_id),
        await evidence_of(*reader) if is_unknown else [],
        await findings_of(*reader) if is_unknown else [],
        looks_of(page.standing, row.kind.name).values() if is_unknown and card else (),
        await look(tx, web, visitor, page, card, read_id) if read_id else None,
        seen,
        reads_seen,
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
        found = await _read(tx, web, visitor, page, known_id(operation_id))
    return _show(request, web, found, is_whole=not is_fragment(request))


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
    typed = _typed(fields)
    try:
        await settle_unknown(
            web.database,
            visitor.actor,
            page.club.id,
            wanted,
            _verdict(typed.verdict),
            typed.note,
            typed.chosen,
            seen=read_revision(fields),
        )
    except (Conflict, Invalid) as error:
        async with web.database.read() as tx:
            found = await _read(tx, web, visitor, page, wanted)
        return _show(request, web, found, typed, problem=error)
    return go_to(page.path(f"scheduled/{encode_id(wanted)}"))


@post("/c/{slug:str}/scheduled/{operation_id:str}/read", opt=access(Access.STAFF), status_code=200)
async def read_now(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    operation_id: FromPath[str],
) -> Response[str]:
    """Have something read that would show what became of it, or look whether that has come. Nothing is recorded by it,
    and what was typed so far stays."""
    fields = await joined_fields(request)
    wanted = known_id(operation_id)
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        row = await operation(tx, page.standing, visitor.actor, page.club.id, wanted)
    tells, reads = fields.get("tells", ""), dict(evidence_for(page.standing, row.kind.name, row.payload))
    read_id, unasked = fields.get("read", ""), None
    if tells in reads and row.state is State.INDETERMINATE:
        try:
            asked = await request_read(web.database, visitor.actor, page.club.id, tells, reads[tells])
            read_id = encode_id(asked.id)
        except (Conflict, TooFast) as error:
            unasked = error
    async with web.database.read() as tx:
        found = await _read(tx, web, visitor, page, wanted, read_id)
    return _show(request, web, found, _typed(fields), unasked=unasked)


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
    typed: Typed = Typed(),
    *,
    problem: LastcallError | None = None,
    unasked: LastcallError | None = None,
    is_whole: bool = True,
) -> Response[str]:
    """``unasked``: why nothing could be read. Not ``is_whole``: the part of the page that changes by itself."""
    row, page = found.row, found.page
    return web.pages.show(
        request,
        "action.html" if is_whole else "action_live.html",
        page.place("scheduled"),
        page.now,
        status=problem.status if problem else 200,
        seen=found.seen,
        reads_seen=found.reads_seen,
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
        typed=typed,
        tells=found.tells,
        awaited=found.awaited,
        problem=problem,
        unasked=unasked,
    )


HANDLERS = (action_page, settle, read_now)
