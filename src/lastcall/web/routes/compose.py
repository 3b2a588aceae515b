"""New action: choose, compose, review, confirm. Nothing is queued before the confirmation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.response import Redirect

from lastcall.connections.queries import ConnectionCard, connection_card
from lastcall.db.ids import encode_id
from lastcall.errors import Conflict, Invalid, LastcallError, NotFound, Unavailable
from lastcall.operations.drafts import post_draft
from lastcall.operations.forecast import forecast
from lastcall.operations.kinds import KINDS, kinds_visible_to
from lastcall.operations.kinds.kind import Kind
from lastcall.operations.schedules import Fixed, Immediate
from lastcall.operations.services.asked import permission_missing
from lastcall.web.access import Access, Visitor, access
from lastcall.web.club import ClubPage, club_page
from lastcall.web.compose.drafts import draft_named, draft_to_be, keep_draft, takes_drafts, values_of_draft
from lastcall.web.compose.fields import Given, fields_for, is_required, read_given
from lastcall.web.compose.filled import Filled
from lastcall.web.compose.options import Options, read_options
from lastcall.web.compose.queueing import banned_among, queue
from lastcall.web.compose.review import Review, new_request_key, read_spread
from lastcall.web.compose.timing import Timing, When, confirmed_timing, local_text, read_timing, read_when
from lastcall.web.fields import known_id
from lastcall.web.looks import KINDS as LOOKS
from lastcall.web.looks import obstacle
from lastcall.web.pages import PageRequest, go_to, joined_fields
from lastcall.web.room import Web
from lastcall.web.times import MINUTE, Zoned


@dataclass(frozen=True)
class Form(Filled):
    """A form as it is shown: what it says, what is wrong, and what it offers."""

    page: ClubPage
    card: ConnectionCard | None
    kind: Kind[Any]
    given: Given
    timing: Timing
    options: Options
    draft: str = ""


async def _look_up(web: Web, visitor: Visitor, slug: str) -> tuple[ClubPage, ConnectionCard | None]:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        return page, await connection_card(tx, page.club.id)


@get("/c/{slug:str}/new", opt=access(Access.STAFF))
async def choose_kind(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Response[str]:
    page, card = await _look_up(web, visitor, slug)
    return web.pages.show(
        request,
        "choose_kind.html",
        page.place("new"),
        page.now,
        kinds=[KINDS[name] for name in kinds_visible_to(page.standing)],
        looks=LOOKS,
        event=request.query_params.get("event", ""),
        connection=card,
        obstacle=obstacle(card.obstacle) if card else None,
    )


@get("/c/{slug:str}/new/{kind:str}", opt=access(Access.STAFF))
async def compose(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    kind: FromPath[str],
    event: FromQuery[str] = "",
    draft: FromQuery[str] = "",
    creation: FromQuery[str] = "",
) -> Response[str]:
    """A fresh form; of an event, a draft or the instance to invite to, if the address names one."""
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        chosen = _kind(page, kind)
        card = await connection_card(tx, page.club.id)
        zone = web.pages.zone(request, page.place("new"))
        values: Mapping[str, str] = {"creation": creation} if creation else {}
        when = When(event=event)
        if draft and takes_drafts(chosen):
            found = await post_draft(tx, visitor.actor, page.club.id, known_id(draft))
            values, when = values_of_draft(found, zone)
            draft = draft_named(found)
        else:
            draft = draft_to_be() if takes_drafts(chosen) else ""
        options = await read_options(tx, page, visitor.actor, chosen, card, when.event)
    picked = options.event(when.event)
    if picked and picked.world_id and not values:
        values = {"world": picked.world_id}
    made = Form(page, card, chosen, Given(values), Timing(when), options, draft)
    return _form_page(request, web, made)


@post("/c/{slug:str}/new/{kind:str}/review", opt=access(Access.STAFF), status_code=200)
async def review(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    kind: FromPath[str],
) -> Response[str] | Redirect:
    """Read the form: back to it with everything that is wrong, or on to the review."""
    fields = await joined_fields(request)
    step = fields.get("step", "")
    form = await _read(web, visitor, slug, kind, _stepped(fields, step))
    if step in ("change", "add_list"):
        unjudged = replace(form.given, problems={}, recipients=replace(form.given.recipients, problems=()))
        calm = replace(form, given=unjudged, timing=replace(form.timing, problems={}))
        return _form_page(request, web, _with_list(calm, fields.get("list", "")))
    if step == "save_draft" and takes_drafts(form.kind):
        try:
            await keep_draft(
                web.database, visitor.actor, form.page.club.id, form.given, form.timing, form.draft
            )
        except (Invalid, Conflict) as error:
            return _form_page(request, web, form, status=error.status, refused=error)
        return go_to(form.page.path("posts"))
    if form.problem_count:
        return _form_page(request, web, form, status=Invalid.status)
    if form.draft:
        try:
            kept = await keep_draft(
                web.database, visitor.actor, form.page.club.id, form.given, form.timing, form.draft
            )
        except (Invalid, Conflict) as error:
            return _form_page(request, web, form, status=error.status, refused=error)
        form = replace(form, draft=kept)
    made = await _review(web, form, new_request_key())
    if step == "spread" and made.forecast:
        made = replace(made, spread=tuple((part.due_at, part.count) for part in made.forecast.spread))
    return _review_page(request, web, form, made)


@post("/c/{slug:str}/new/{kind:str}", opt=access(Access.STAFF))
async def confirm(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    kind: FromPath[str],
) -> Response[str] | Redirect:
    """Queue what was reviewed. The request id was made at the review, so confirming twice queues once."""
    fields = await joined_fields(request)
    form = await _read(web, visitor, slug, kind, fields, reviewed=fields.get("reviewed", ""))
    if form.problem_count:
        return _form_page(request, web, form, status=Invalid.status)
    targets = max(len(form.given.recipients.people), 1)
    made = Review(
        fields.get("request_key", ""),
        form.kind,
        form.given,
        form.timing,
        None,
        spread=read_spread(fields.get("spread", ""), targets),
        chosen=frozenset(fields.get("banned", "").split()),
        draft=form.draft,
    )
    try:
        queued = await queue(web.database, visitor.actor, form.page.club.id, made)
    except NotFound:
        raise
    except LastcallError as error:
        if error.code == "event_moved":
            # The time that follows from the event now, to be reviewed anew.
            form = await _read(web, visitor, slug, kind, fields)
            if form.problem_count:
                return _form_page(request, web, form, status=error.status, refused=error)
        again = await _review(web, form, made.request_key)
        again = replace(again, spread=() if error.code == "event_moved" else made.spread, chosen=made.chosen)
        return _review_page(request, web, form, again, refused=error)
    if len(queued) > 1:
        return go_to(form.page.path("scheduled"))
    return go_to(form.page.path(f"requests/{encode_id(queued[0])}"))


def _kind(page: ClubPage, name: str) -> Kind[Any]:
    """The kind in the address. One that the person may not queue is refused, one that is none is unknown."""
    kind = KINDS.get(name)
    if kind is None:
        raise NotFound("not_found", "There is no such kind of action.")
    if not page.standing.holds(kind.permission):
        raise permission_missing(kind.permission)
    return kind


def _stepped(fields: Mapping[str, str], step: str) -> Mapping[str, str]:
    """What a button of the review changes in the form that it sends again."""
    if step == "second":
        return {**fields, "second": "" if fields.get("second") else "yes"}
    if step == "leave_out":
        banned = fields.get("banned_all", "").split()
        lines = [line for line in fields.get("people", "").splitlines() if line.split(" ")[0] not in banned]
        return {**fields, "people": "\n".join(lines)}
    if step == "earlier":
        return {
            **fields,
            **{name: fields.get(f"earlier_{name}", "") for name in ("when", "at", "minutes", "side")},
        }
    return fields


async def _read(
    web: Web,
    visitor: Visitor,
    slug: str,
    kind_name: str,
    fields: Mapping[str, str],
    *,
    reviewed: str | None = None,
) -> Form:
    """``reviewed`` is the due time that a confirmation names, None at the review."""
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        kind = _kind(page, kind_name)
        card = await connection_card(tx, page.club.id)
        given = read_given(kind, fields)
        when = read_when(fields)
        options = await read_options(tx, page, visitor.actor, kind, card, when.event)
        if reviewed is None:
            timing = await read_timing(tx, page.standing, page.club.id, when, page.now)
        else:
            timing = await confirmed_timing(tx, page.standing, page.club.id, when, reviewed)
    if reviewed is None and isinstance(timing.schedule, Immediate):
        creation = options.creation(given.values.get("creation", ""))
        if creation and creation.due_at > page.now:
            # Nobody is invited before the instance is there: now means when it is due.
            fixed = Fixed(creation.due_at, timing.schedule.event_id)
            timing = replace(timing, schedule=fixed, due_at=creation.due_at)
    draft = fields.get("draft", "") if takes_drafts(kind) else ""
    return Form(page, card, kind, given, timing, options, draft)


def _with_list(form: Form, list_id: str) -> Form:
    """The people of a recipient list, added to those who are named already."""
    found = next((one for one in form.options.lists if encode_id(one.id) == list_id), None)
    if found is None:
        return form
    text = form.given.values.get("people", "")
    known = text.lower()
    added = "\n".join(user_id for user_id in found.user_ids if user_id not in known)
    people = "\n".join(part for part in (text, added) if part)
    return replace(form, given=replace(form.given, values={**form.given.values, "people": people}))


async def _review(web: Web, form: Form, request_key: str) -> Review:
    people = [person.user_id for person in form.given.recipients.people]
    async with web.database.read() as tx:
        planned = await forecast(
            tx, form.page.standing, form.page.club.id, form.kind, max(len(people), 1), form.timing.due_at
        )
        banned = await banned_among(tx, form.page.club.id, form.card, form.page.now, form.kind, people)
    return Review(request_key, form.kind, form.given, form.timing, planned, banned=banned, draft=form.draft)


def _form_page(
    request: PageRequest, web: Web, form: Form, *, status: int = 200, refused: LastcallError | None = None
) -> Response[str]:
    return web.pages.show(
        request,
        "compose.html",
        form.page.place("new"),
        form.page.now,
        status=status,
        form=form,
        kind=form.kind,
        look=LOOKS[form.kind.name],
        fields=fields_for(form.kind),
        required={one.name for one in fields_for(form.kind) if is_required(form.kind, one)},
        refused=refused,
        takes_drafts=takes_drafts(form.kind),
        connection=form.card,
        obstacle=obstacle(form.card.obstacle) if form.card else None,
    )


def _review_page(
    request: PageRequest, web: Web, form: Form, made: Review, *, refused: LastcallError | None = None
) -> Response[str]:
    page = form.page
    zoned = Zoned(web.pages.zone(request, page.place("new")), page.now)
    return web.pages.show(
        request,
        "review.html",
        page.place("new"),
        page.now,
        status=refused.status if refused else 200,
        kind=made.kind,
        look=LOOKS[made.kind.name],
        review=made,
        form=form,
        fields=[one for one in fields_for(form.kind) if one.widget != "people"],
        earlier=_earlier(made, zoned),
        refused=refused,
        may_repeat=isinstance(refused, Unavailable),
    )


def _earlier(made: Review, zoned: Zoned) -> dict[str, str]:
    """The form's part about the time, if it began so much earlier that nobody is missed."""
    if made.forecast is None or made.forecast.earlier_start is None:
        return {}
    start = made.forecast.earlier_start
    when = made.timing.when
    event = made.timing.event
    if when.when == "event" and event is not None and event.starts_at is not None:
        minutes = (start - event.starts_at) // MINUTE
        return {
            "earlier_when": "event",
            "earlier_at": "",
            "earlier_minutes": str(abs(minutes)),
            "earlier_side": "after" if minutes > 0 else "before",
        }
    return {
        "earlier_when": "at",
        "earlier_at": local_text(start.astimezone(zoned.zone)),
        "earlier_minutes": when.minutes,
        "earlier_side": when.side,
    }


HANDLERS = (choose_kind, compose, review, confirm)
