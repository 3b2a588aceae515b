"""New action: choose, compose, review, confirm. Nothing is queued before the confirmation."""

from __future__ import annotations

from typing import Any

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Redirect

from lastcall.connections.queries import ConnectionCard, connection_card
from lastcall.db.ids import encode_id
from lastcall.errors import Invalid, LastcallError, NotAllowed, NotFound, Unavailable
from lastcall.operations.forecast import Forecast, forecast
from lastcall.operations.kinds import KINDS, kinds_visible_to
from lastcall.operations.kinds.kind import Kind
from lastcall.operations.schedules import Fixed, Schedule
from lastcall.operations.services.enqueue import enqueue
from lastcall.web.access import Access, Visitor, access
from lastcall.web.club import ClubPage, club_page
from lastcall.web.compose import Form, Review, has_form, make_review, read_form, takes_role
from lastcall.web.looks import KINDS as LOOKS
from lastcall.web.looks import obstacle
from lastcall.web.pages import PageRequest, form_fields, go_to
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
        kinds=[KINDS[name] for name in kinds_visible_to(page.standing) if has_form(KINDS[name])],
        looks=LOOKS,
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
) -> Response[str]:
    page, card = await _look_up(web, visitor, slug)
    return _form_page(request, web, page, card, _kind(page, kind), Form())


@post("/c/{slug:str}/new/{kind:str}/review", opt=access(Access.STAFF), status_code=200)
async def review(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    kind: FromPath[str],
) -> Response[str]:
    """Read the form: back to it with everything that is wrong, or on to the review."""
    fields = await form_fields(request)
    page, card = await _look_up(web, visitor, slug)
    chosen = _kind(page, kind)
    form, recipients, schedule = read_form(chosen, fields, page.now)
    if fields.get("step") == "change":
        return _form_page(request, web, page, card, chosen, form)
    if form.problem_count or schedule is None:
        return _form_page(request, web, page, card, chosen, form, status=Invalid.status)
    made = make_review(
        chosen,
        form,
        recipients,
        schedule,
        role_name=_role_name(card, form.role),
        forecast=await _forecast(web, page, chosen, len(recipients.people), schedule),
    )
    return _review_page(request, web, page, made)


@post("/c/{slug:str}/new/{kind:str}", opt=access(Access.STAFF))
async def confirm(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    kind: FromPath[str],
) -> Response[str] | Redirect:
    """Queue what was reviewed. The request id was made at the review, so confirming twice queues once."""
    fields = await form_fields(request)
    page, card = await _look_up(web, visitor, slug)
    chosen = _kind(page, kind)
    form, recipients, schedule = read_form(chosen, fields, page.now, is_confirmation=True)
    if form.problem_count or schedule is None:
        return _form_page(request, web, page, card, chosen, form, status=Invalid.status)
    made = make_review(
        chosen,
        form,
        recipients,
        schedule,
        role_name=_role_name(card, form.role),
        forecast=await _forecast(web, page, chosen, len(recipients.people), schedule),
        request_key=fields.get("request_key", ""),
    )
    try:
        queued = await enqueue(
            web.database, visitor.actor, page.club.id, made.request_key, made.payloads, made.schedule
        )
    except NotFound:
        raise
    except LastcallError as error:
        return _review_page(request, web, page, made, refused=error)
    return go_to(page.path(f"requests/{encode_id(queued.request_id)}"))


def _kind(page: ClubPage, name: str) -> Kind[Any]:
    """The kind in the address. One that the person may not queue is refused, one that is none is unknown."""
    kind = KINDS.get(name)
    if kind is None or not has_form(kind):
        raise NotFound("not_found", "There is no such kind of action.")
    if not page.standing.holds(kind.permission):
        raise NotAllowed(
            "permission_missing",
            f"This needs the permission “{kind.permission.label}”, which none of your roles has.",
            advice="Ask the owner of the club for a role that has it.",
        )
    return kind


def _role_name(card: ConnectionCard | None, role: str) -> str | None:
    roles = () if card is None else card.roles
    return next((one.name for one in roles if one.id.lower() == role.lower()), None)


async def _forecast(
    web: Web, page: ClubPage, kind: Kind[Any], targets: int, schedule: Schedule
) -> Forecast | None:
    due_at = schedule.due_at if isinstance(schedule, Fixed) else None
    async with web.database.read() as tx:
        return await forecast(tx, page.standing, page.club.id, kind, targets, due_at)


def _form_page(
    request: PageRequest,
    web: Web,
    page: ClubPage,
    card: ConnectionCard | None,
    kind: Kind[Any],
    form: Form,
    *,
    status: int = 200,
) -> Response[str]:
    roles = [] if card is None else [role for role in card.roles if page.standing.may_assign(role.id)]
    return web.pages.show(
        request,
        "compose.html",
        page.place("new"),
        page.now,
        status=status,
        kind=kind,
        look=LOOKS[kind.name],
        form=form,
        takes_role=takes_role(kind),
        roles=roles,
        connection=card,
        obstacle=obstacle(card.obstacle) if card else None,
    )


def _review_page(
    request: PageRequest, web: Web, page: ClubPage, made: Review, *, refused: LastcallError | None = None
) -> Response[str]:
    return web.pages.show(
        request,
        "review.html",
        page.place("new"),
        page.now,
        status=refused.status if refused else 200,
        kind=made.kind,
        look=LOOKS[made.kind.name],
        review=made,
        refused=refused,
        may_repeat=isinstance(refused, Unavailable),
    )


HANDLERS = (choose_kind, compose, review, confirm)
