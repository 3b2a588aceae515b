"""A club's settings, and the steps of its life. For its owner."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Redirect

from lastcall.clubs.life import archive_club, delete_club, pause_club, resume_club, unarchive_club
from lastcall.clubs.ownership import transfer_club
from lastcall.clubs.queries import ClubSettings, club_settings, roles_of, roster
from lastcall.clubs.service import ClubFields, edit_club
from lastcall.db.database import Database
from lastcall.errors import Conflict, Invalid, LastcallError, NotFound
from lastcall.people.actor import Actor
from lastcall.web.access import Access, Visitor, access
from lastcall.web.club import ClubPage, club_page
from lastcall.web.fields import known_id, read_seen, seen_text
from lastcall.web.pages import PageRequest, form_fields, go_to
from lastcall.web.room import Web

RETENTION_CHOICES = (7, 30, 90)
"""Days that the form offers beside *never*; another number that was set by the API is offered too."""
NEVER = "never"

Step = Callable[[Database, Actor, UUID], Awaitable[ClubSettings]]


@dataclass(frozen=True)
class Act:
    """A step in the club's life, with the words for the question before it. ``of``: the states it leaves."""

    of: frozenset[str]
    button: str
    title: str
    sentences: tuple[str, ...]
    step: Step
    is_danger: bool = False
    needs_confirming: bool = False


ACTS: dict[str, Act] = {
    "pause": Act(
        frozenset({"active"}),
        "Pause",
        "Pause {name}?",
        (
            "What the club does by itself stops: nothing is archived after its days, and agents rest.",
            "What your staff reviewed and queued is still sent.",
        ),
        pause_club,
    ),
    "resume": Act(
        frozenset({"paused"}),
        "Resume",
        "Let {name} go on?",
        ("What became overdue meanwhile is archived at once.",),
        resume_club,
    ),
    "archive": Act(
        frozenset({"active", "paused"}),
        "Archive",
        "Archive {name}?",
        (
            "The club is closed: it is disconnected from its VRChat group, and what was not sent never is.",
            "Everything stays to be read, and you can bring the club back.",
        ),
        archive_club,
        is_danger=True,
        needs_confirming=True,
    ),
    "unarchive": Act(
        frozenset({"archived"}),
        "Bring back",
        "Bring {name} back?",
        ("It is active again, with its staff and roles. The VRChat group has to be connected anew.",),
        unarchive_club,
    ),
}


@get("/c/{slug:str}/settings", opt=access(Access.STAFF))
async def settings_page(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Response[str]:
    page, settings = await _look_up(web, visitor, slug)
    return _show(request, web, page, settings)


@post("/c/{slug:str}/settings", opt=access(Access.STAFF))
async def save_settings(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Response[str] | Redirect:
    page, settings = await _look_up(web, visitor, slug)
    fields = await form_fields(request)
    try:
        saved = await edit_club(
            web.database, visitor.actor, page.club.id, _read(fields), read_seen(fields.get("seen", ""))
        )
    except Conflict as error:
        # What the person typed stays in the form; what it is compared with from now on is the fresh row.
        fresh = error.fresh if isinstance(error.fresh, ClubSettings) else settings
        return _show(request, web, page, fresh, fields=fields, problem=error)
    except Invalid as error:
        return _show(request, web, page, settings, fields=fields, problem=error)
    return go_to(f"/c/{saved.slug}/settings?saved=1")


@get("/c/{slug:str}/settings/transfer", opt=access(Access.STAFF))
async def transfer_page(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Response[str]:
    return await _show_transfer(request, web, visitor, slug)


@post("/c/{slug:str}/settings/transfer", opt=access(Access.STAFF))
async def transfer(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Response[str] | Redirect:
    page, _ = await _look_up(web, visitor, slug)
    fields = await form_fields(request)
    kept = fields.get("former_owner_role_id", "")
    try:
        await transfer_club(
            web.database,
            visitor.actor,
            page.club.id,
            _chosen(fields.get("new_owner_id", "")),
            former_owner_role_id=_chosen(kept) if kept else None,
        )
    except (Invalid, NotFound) as error:
        return await _show_transfer(request, web, visitor, slug, fields=fields, problem=error)
    return go_to("/" if not kept else page.path("scheduled"))


@get("/c/{slug:str}/settings/delete", opt=access(Access.STAFF))
async def delete_page(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Response[str]:
    page, settings = await _look_up(web, visitor, slug)
    visitor.actor.require_recent()
    return _show_delete(request, web, page, settings)


@post("/c/{slug:str}/settings/delete", opt=access(Access.STAFF))
async def delete(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Response[str] | Redirect:
    page, settings = await _look_up(web, visitor, slug)
    typed = (await form_fields(request)).get("confirm_slug", "").strip()
    try:
        await delete_club(web.database, visitor.actor, page.club.id, confirm_slug=typed)
    except (Invalid, Conflict) as error:
        return _show_delete(request, web, page, settings, typed=typed, problem=error)
    return go_to("/")


@get("/c/{slug:str}/settings/{act:str}", opt=access(Access.STAFF))
async def ask(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    act: FromPath[str],
) -> Response[str]:
    """The question before a step; whoever must confirm that it is them does that first."""
    page, settings = await _look_up(web, visitor, slug)
    chosen = _known_act(act)
    if chosen.needs_confirming:
        visitor.actor.require_recent()
    return web.pages.show(
        request, "club_ask.html", page.place("settings"), page.now, settings=settings, act=chosen, key=act
    )


@post("/c/{slug:str}/settings/{act:str}", opt=access(Access.STAFF))
async def do(
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    act: FromPath[str],
) -> Redirect:
    page, _ = await _look_up(web, visitor, slug)
    await _known_act(act).step(web.database, visitor.actor, page.club.id)
    return go_to(page.path("settings"))


async def _look_up(web: Web, visitor: Visitor, slug: str) -> tuple[ClubPage, ClubSettings]:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        return page, await club_settings(tx, visitor.actor, page.club.id)


def _show(
    request: PageRequest,
    web: Web,
    page: ClubPage,
    settings: ClubSettings,
    *,
    fields: dict[str, str] | None = None,
    problem: LastcallError | None = None,
) -> Response[str]:
    days = settings.retention_days
    return web.pages.show(
        request,
        "club_settings.html",
        page.place("settings"),
        page.now,
        status=problem.status if problem else 200,
        settings=settings,
        seen=seen_text(settings.updated_at),
        fields={
            "name": settings.name,
            "slug": settings.slug,
            "zone": settings.zone,
            "retention_days": NEVER if days is None else str(days),
        }
        | (fields or {}),
        choices=sorted({*RETENTION_CHOICES, *([days] if days else [])}),
        acts=[(key, act) for key, act in ACTS.items() if settings.state in act.of],
        problem=problem,
        is_saved="saved" in request.query_params and problem is None,
    )


async def _show_transfer(
    request: PageRequest,
    web: Web,
    visitor: Visitor,
    slug: str,
    *,
    fields: dict[str, str] | None = None,
    problem: LastcallError | None = None,
) -> Response[str]:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        settings = await club_settings(tx, visitor.actor, page.club.id)
        visitor.actor.require_recent()
        staff = await roster(tx, visitor.actor, page.club.id)
        roles = await roles_of(tx, page.club.id)
    return web.pages.show(
        request,
        "club_transfer.html",
        page.place("settings"),
        page.now,
        status=problem.status if problem else 200,
        settings=settings,
        people=[member for member in staff.members if not member.is_blocked],
        roles=roles,
        fields={"new_owner_id": "", "former_owner_role_id": ""} | (fields or {}),
        problem=problem,
    )


def _show_delete(
    request: PageRequest,
    web: Web,
    page: ClubPage,
    settings: ClubSettings,
    *,
    typed: str = "",
    problem: LastcallError | None = None,
) -> Response[str]:
    return web.pages.show(
        request,
        "club_delete.html",
        page.place("settings"),
        page.now,
        status=problem.status if problem else 200,
        settings=settings,
        typed=typed,
        problem=problem,
    )


def _read(fields: dict[str, str]) -> ClubFields:
    days = fields.get("retention_days", "")
    if days != NEVER and not (days.isascii() and days.isdigit() and len(days) <= 4):
        raise Invalid(
            "retention_days_invalid", "Choose after how many days, or never.", field="retention_days"
        )
    return ClubFields(
        name=fields.get("name", ""),
        slug=fields.get("slug", "").strip(),
        zone=fields.get("zone", "").strip(),
        retention_days=None if days == NEVER else int(days),
    )


def _chosen(text: str) -> UUID:
    if not text:
        raise Invalid("owner_needed", "Choose who the club goes to.", field="new_owner_id")
    return known_id(text)


def _known_act(key: str) -> Act:
    if key not in ACTS:
        raise NotFound("not_found", "There is no such page.")
    return ACTS[key]


HANDLERS = (
    settings_page,
    save_settings,
    transfer_page,
    transfer,
    delete_page,
    delete,
    ask,
    do,
)
