"""New action: choose, compose, review, confirm. Nothing is queued before the confirmation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.response import Redirect

from lastcall.connections.queries import ConnectionCard, connection_card
from lastcall.db.ids import encode_id
from lastcall.errors import Conflict, Invalid, LastcallError, NotFound, TooFast
from lastcall.operations.drafts import post_draft
from lastcall.operations.kinds import KINDS, kinds_visible_to
from lastcall.operations.queries import was_queued
from lastcall.web.access import Access, Visitor, access
from lastcall.web.club import ClubPage, club_page
from lastcall.web.compose.checks import ask, check_for
from lastcall.web.compose.drafts import draft_named, draft_to_be, keep_draft, takes_drafts, values_of_draft
from lastcall.web.compose.fields import Given
from lastcall.web.compose.form import Form, kind_at, read_form, review_of, stepped, with_list
from lastcall.web.compose.options import read_options
from lastcall.web.compose.queueing import queue
from lastcall.web.compose.review import Review, new_request_key, read_spread
from lastcall.web.compose.show import show_form, show_review
from lastcall.web.compose.timing import Timing, When
from lastcall.web.fields import known_id
from lastcall.web.looks import KINDS as LOOKS
from lastcall.web.looks import obstacle
from lastcall.web.pages import PageRequest, go_to, joined_fields
from lastcall.web.room import Web


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
        chosen = kind_at(page, kind)
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
    return show_form(request, web, made)


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
    form = await read_form(web, visitor, slug, kind, stepped(fields, step))
    if step in ("change", "add_list"):
        unjudged = replace(form.given, problems={}, recipients=replace(form.given.recipients, problems=()))
        calm = replace(form, given=unjudged, timing=replace(form.timing, problems={}))
        return show_form(request, web, with_list(calm, fields.get("list", "")))
    if step == "save_draft" and takes_drafts(form.kind):
        try:
            await keep_draft(
                web.database, visitor.actor, form.page.club.id, form.given, form.timing, form.draft
            )
        except (Invalid, Conflict) as error:
            return show_form(request, web, form, status=error.status, refused=error)
        return go_to(form.page.path("posts"))
    if form.problem_count:
        return show_form(request, web, form, status=Invalid.status)
    if form.draft:
        try:
            kept = await keep_draft(
                web.database, visitor.actor, form.page.club.id, form.given, form.timing, form.draft
            )
        except (Invalid, Conflict) as error:
            return show_form(request, web, form, status=error.status, refused=error)
        form = replace(form, draft=kept)
    if step in LOOKS_UP:
        return await _look_up_for(request, web, visitor, form, fields, step)
    made = await review_of(web, form, new_request_key())
    if step == "spread" and made.forecast:
        made = replace(made, spread=tuple((part.due_at, part.count) for part in made.forecast.spread))
    return await show_review(request, web, form, made)


LOOKS_UP = ("check", "check_next", "look")


async def _look_up_for(
    request: PageRequest, web: Web, visitor: Visitor, form: Form, fields: Mapping[str, str], step: str
) -> Response[str]:
    """Have something looked up for the review, or look whether it has come. What is reviewed stays as it is, the
    request id too."""
    unasked: LastcallError | None = None
    if step != "look" and check_for(form):
        offset = fields.get("check_from", "") if step == "check_next" else ""
        try:
            read_id = await ask(web, visitor, form, int(offset) if offset.isdecimal() else 0)
            form = replace(form, check=read_id)
        except (Conflict, Invalid, TooFast) as error:
            unasked = error
    made = await review_of(web, form, fields.get("request_key", ""))
    targets = max(len(form.given.recipients.people), 1)
    made = replace(made, spread=read_spread(fields.get("spread", ""), targets), chosen=_chosen(fields))
    return await show_review(request, web, form, made, unasked=unasked)


def _chosen(fields: Mapping[str, str]) -> frozenset[str]:
    """The people who are to be let in although they are banned."""
    return frozenset(fields.get("banned", "").split())


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
    form = await read_form(web, visitor, slug, kind, fields, reviewed=fields.get("reviewed", ""))
    if form.problem_count:
        return show_form(request, web, form, status=Invalid.status)
    targets = max(len(form.given.recipients.people), 1)
    made = Review(
        fields.get("request_key", ""),
        form.kind,
        form.given,
        form.timing,
        None,
        spread=read_spread(fields.get("spread", ""), targets),
        chosen=_chosen(fields),
        draft=form.draft,
        read=form.source_id,
        check=form.check,
    )
    over = await _over(web, visitor, form, made)
    if over is not None:
        again = replace(await review_of(web, form, made.request_key), spread=made.spread, chosen=made.chosen)
        return await show_review(request, web, form, again, refused=over)
    try:
        queued = await queue(web.database, visitor.actor, form.page.club.id, made)
    except NotFound:
        raise
    except LastcallError as error:
        if error.code == "event_moved":
            # The time that follows from the event now, to be reviewed anew.
            form = await read_form(web, visitor, slug, kind, fields)
            if form.problem_count:
                return show_form(request, web, form, status=error.status, refused=error)
        again = await review_of(web, form, made.request_key)
        again = replace(again, spread=() if error.code == "event_moved" else made.spread, chosen=made.chosen)
        return await show_review(request, web, form, again, refused=error)
    if len(queued) > 1:
        return go_to(form.page.path("scheduled"))
    return go_to(form.page.path(f"requests/{encode_id(queued[0])}"))


async def _over(web: Web, visitor: Visitor, form: Form, made: Review) -> Conflict | None:
    """What is said of a confirmation whose list is no longer fresh (INS-02). One that was queued before, and whose
    answer was lost, is answered as it was."""
    if form.source is None or form.source.is_fresh:
        return None
    async with web.database.read() as tx:
        if await was_queued(tx, form.page.club.id, visitor.actor.person_id, made.request_keys):
            return None
    return Conflict(
        "read_over",
        "Refresh to continue.",
        advice="The list that these people were chosen from is more than a minute old, so nothing was queued.",
    )


HANDLERS = (choose_kind, compose, review, confirm)
