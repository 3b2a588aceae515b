"""Data visibility: who may see what the club measures. For its owner."""

from __future__ import annotations

from datetime import datetime

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Redirect

from lastcall.clubs.queries import roles_of
from lastcall.clubs.visibility import Audience, Category, set_visibility, visibility_of
from lastcall.errors import Conflict, Invalid, LastcallError, NotFound
from lastcall.web.access import Access, Visitor, access
from lastcall.web.club import club_page
from lastcall.web.fields import chosen_ids, read_seen, seen_text
from lastcall.web.pages import PageRequest, form_fields, go_to
from lastcall.web.room import Web

AUDIENCES = {
    Audience.OWNER: ("Only you", "Nobody else, whatever their roles."),
    Audience.ROLES: ("Some roles", "Those who hold a role that you tick."),
    Audience.STAFF: ("All staff", "Everybody who holds any role here."),
    Audience.PUBLIC: ("Everybody", "Also people who are not signed in."),
}


@get("/c/{slug:str}/visibility", opt=access(Access.STAFF))
async def visibility_page(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Response[str]:
    return await _show(request, web, visitor, slug)


@post("/c/{slug:str}/visibility/{category:str}", opt=access(Access.STAFF))
async def choose(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    category: FromPath[str],
) -> Response[str] | Redirect:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    chosen = _known_category(category)
    fields = await form_fields(request)
    try:
        audience = _audience(fields.get("audience", ""))
        role_ids = await chosen_ids(request, "role") if audience is Audience.ROLES else frozenset()
        await set_visibility(
            web.database, visitor.actor, page.club.id, chosen, audience, role_ids, _seen(fields)
        )
    except (Invalid, Conflict, NotFound) as error:
        return await _show(request, web, visitor, slug, wrong=chosen, problem=error)
    return go_to(page.path(f"visibility?saved={chosen.value}"))


async def _show(
    request: PageRequest,
    web: Web,
    visitor: Visitor,
    slug: str,
    *,
    wrong: Category | None = None,
    problem: LastcallError | None = None,
) -> Response[str]:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        views = await visibility_of(tx, visitor.actor, page.club.id)
        roles = await roles_of(tx, page.club.id)
    return web.pages.show(
        request,
        "visibility.html",
        page.place("settings"),
        page.now,
        status=problem.status if problem else 200,
        views=views,
        audiences=AUDIENCES,
        roles=roles,
        seen=seen_text,
        wrong=wrong,
        problem=problem,
        saved=request.query_params.get("saved") if problem is None else None,
    )


def _known_category(text: str) -> Category:
    if text not in {category.value for category in Category}:
        raise NotFound("not_found", "There is no such page.")
    return Category(text)


def _audience(text: str) -> Audience:
    if text not in {audience.value for audience in Audience}:
        raise Invalid("audience_unknown", "Choose who may see it.", field="audience")
    return Audience(text)


def _seen(fields: dict[str, str]) -> datetime | None:
    """None: the form showed the choice that every club begins with."""
    text = fields.get("seen", "")
    return read_seen(text) if text else None


HANDLERS = (visibility_page, choose)
