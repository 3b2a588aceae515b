"""A person's own data, to take along or to have erased; and everything of a club, for its owner."""

from __future__ import annotations

from collections.abc import AsyncIterator

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Stream

from lastcall.api.files import file_of
from lastcall.clock import SYSTEM_CLOCK
from lastcall.clubs.export import export_club
from lastcall.errors import Conflict
from lastcall.people.data_retention import rules
from lastcall.people.erasing import erase_person, export_person
from lastcall.people.queries import own_account
from lastcall.web.access import Access, Visitor, access
from lastcall.web.club import club_page
from lastcall.web.pages import NOWHERE, PageRequest, Place, form_fields
from lastcall.web.room import Web, database_now

PLACE = Place("me")
JSON_LINES = "application/x-ndjson"


@get("/me/privacy", opt=access(Access.SIGNED_IN))
async def privacy_page(request: PageRequest, web: NamedDependency[Web]) -> Response[str]:
    async with web.database.read() as tx:
        now = await database_now(tx)
    return web.pages.show(request, "me_privacy.html", PLACE, now, rules=rules())


@post("/me/privacy/export", opt=access(Access.SIGNED_IN), status_code=200)
async def take_along(web: NamedDependency[Web], visitor: NamedDependency[Visitor]) -> Stream:
    lines = export_person(web.database, visitor.actor, visitor.actor.person_id)
    return await _download(lines, "lastcall-my-data.jsonl")


@get("/me/privacy/erase", opt=access(Access.SIGNED_IN))
async def ask_erase(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor]
) -> Response[str]:
    visitor.actor.require_recent()
    return await _ask(request, web, visitor)


@post("/me/privacy/erase", opt=access(Access.SIGNED_IN), status_code=200)
async def erase(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor]
) -> Response[str]:
    """Only after the address was typed: nobody erases themselves by a slip."""
    visitor.actor.require_recent()
    typed = (await form_fields(request)).get("email", "").strip().lower()
    async with web.database.read() as tx:
        person = await own_account(tx, visitor.actor)
    if typed != person.email.lower():
        return await _ask(request, web, visitor, wrong_email=True)
    try:
        await erase_person(web.database, visitor.actor, visitor.actor.person_id)
    except Conflict as error:
        return await _ask(request, web, visitor, problem=error)
    request.state.visitor = Visitor(None, None, "", is_new=False)
    answer = web.pages.show(request, "erased.html", NOWHERE, SYSTEM_CLOCK.wall())
    cookies = web.pages.cookies
    answer.set_cookie(cookies.make(cookies.session, "", max_age=0))
    return answer


@post("/c/{slug:str}/export", opt=access(Access.STAFF), status_code=200)
async def take_club_along(
    web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Stream:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    lines = export_club(web.database, visitor.actor, page.club.id)
    return await _download(lines, f"lastcall-{page.club.slug}.jsonl")


async def _ask(
    request: PageRequest,
    web: Web,
    visitor: Visitor,
    *,
    wrong_email: bool = False,
    problem: Conflict | None = None,
) -> Response[str]:
    async with web.database.read() as tx:
        now = await database_now(tx)
        person = await own_account(tx, visitor.actor)
    return web.pages.show(
        request,
        "me_erase.html",
        PLACE,
        now,
        status=problem.status if problem else 422 if wrong_email else 200,
        address=person.email,
        wrong_email=wrong_email,
        problem=problem,
    )


async def _download(lines: AsyncIterator[bytes], name: str) -> Stream:
    return await file_of(
        lines,
        media_type=JSON_LINES,
        headers={
            "Content-Disposition": f'attachment; filename="{name}"',
            "Cache-Control": "no-store",
        },
    )


HANDLERS = (privacy_page, take_along, ask_erase, erase, take_club_along)
