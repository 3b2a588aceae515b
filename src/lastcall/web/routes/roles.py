"""Roles: what each allows. Whoever manages staff may read them; the owner makes, edits and deletes them."""

from __future__ import annotations

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Redirect

from lastcall.clubs.permissions import Permission
from lastcall.clubs.policy import require_owner
from lastcall.clubs.queries import RoleView, role, staff_roles
from lastcall.clubs.roles import RoleFields, create_role, delete_role, edit_role, fields_of
from lastcall.clubs.visibility import Category
from lastcall.errors import Conflict, Invalid, LastcallError, NotFound
from lastcall.people.scopes import Scope
from lastcall.web.access import Access, Visitor, access
from lastcall.web.club import ClubPage, club_page
from lastcall.web.fields import chosen_ids, known_id, read_seen, seen_text
from lastcall.web.pages import PageRequest, form_fields, go_to
from lastcall.web.room import Web

EMPTY = RoleFields(name="")


@get("/c/{slug:str}/roles", opt=access(Access.STAFF))
async def roles_page(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Response[str]:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        roles = await staff_roles(tx, visitor.actor, page.club.id)
    gone = request.query_params.getall("owner_only", [])
    return web.pages.show(
        request,
        "roles.html",
        page.place("staff"),
        page.now,
        roles=roles,
        owner_only=[category.label for category in Category if category in gone],
    )


@get("/c/{slug:str}/roles/new", opt=access(Access.STAFF))
async def new_role_page(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Response[str]:
    return await _form(request, web, visitor, slug, fields=EMPTY)


@post("/c/{slug:str}/roles/new", opt=access(Access.STAFF))
async def make_role(
    request: PageRequest, web: NamedDependency[Web], visitor: NamedDependency[Visitor], slug: FromPath[str]
) -> Response[str] | Redirect:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    fields = await _read(request)
    try:
        await create_role(web.database, visitor.actor, page.club.id, fields)
    except (Invalid, Conflict, NotFound) as error:
        return await _form(request, web, visitor, slug, fields=fields, problem=error)
    return go_to(page.path("roles"))


@get("/c/{slug:str}/roles/{role_id:str}", opt=access(Access.STAFF))
async def role_page(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    role_id: FromPath[str],
) -> Response[str]:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        found = await role(tx, visitor.actor, page.club.id, known_id(role_id))
        if not page.standing.is_owner:
            return _read_only(request, web, page, found)
    return await _form(request, web, visitor, slug, fields=fields_of(found), found=found)


@post("/c/{slug:str}/roles/{role_id:str}", opt=access(Access.STAFF))
async def save_role(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    role_id: FromPath[str],
) -> Response[str] | Redirect:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        found = await role(tx, visitor.actor, page.club.id, known_id(role_id))
    fields = await _read(request)
    seen = read_seen((await form_fields(request)).get("seen", ""))
    try:
        await edit_role(web.database, visitor.actor, page.club.id, found.id, fields, seen)
    except (Invalid, Conflict, NotFound) as error:
        # What was ticked stays; the next save is compared with the role as it is now.
        fresh = error.fresh if isinstance(error, Conflict) and isinstance(error.fresh, RoleView) else found
        return await _form(request, web, visitor, slug, fields=fields, found=fresh, problem=error)
    return go_to(page.path("roles"))


@get("/c/{slug:str}/roles/{role_id:str}/delete", opt=access(Access.STAFF))
async def ask_delete(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    role_id: FromPath[str],
) -> Response[str]:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        await require_owner(tx, visitor.actor, page.club.id, scope=Scope.READ)
        found = await role(tx, visitor.actor, page.club.id, known_id(role_id))
    return web.pages.show(
        request,
        "role_delete.html",
        page.place("staff"),
        page.now,
        role=found,
        seen=seen_text(found.updated_at),
    )


@post("/c/{slug:str}/roles/{role_id:str}/delete", opt=access(Access.STAFF))
async def delete(
    request: PageRequest,
    web: NamedDependency[Web],
    visitor: NamedDependency[Visitor],
    slug: FromPath[str],
    role_id: FromPath[str],
) -> Redirect:
    """What fell to the owner alone is named on the list that follows."""
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
    seen = read_seen((await form_fields(request)).get("seen", ""))
    gone = await delete_role(web.database, visitor.actor, page.club.id, known_id(role_id), seen)
    told = "&".join(f"owner_only={category}" for category in gone.owner_only)
    return go_to(page.path(f"roles?{told}" if told else "roles"))


async def _form(
    request: PageRequest,
    web: Web,
    visitor: Visitor,
    slug: str,
    *,
    fields: RoleFields,
    found: RoleView | None = None,
    problem: LastcallError | None = None,
) -> Response[str]:
    async with web.database.read() as tx:
        page = await club_page(tx, visitor, slug)
        await require_owner(tx, visitor.actor, page.club.id, scope=Scope.READ)
        roles = await staff_roles(tx, visitor.actor, page.club.id)
    return web.pages.show(
        request,
        "role_form.html",
        page.place("staff"),
        page.now,
        status=problem.status if problem else 200,
        role=found,
        seen=seen_text(found.updated_at if found else None),
        fields=fields,
        permissions=list(Permission),
        others=roles,
        problem=problem,
    )


def _read_only(request: PageRequest, web: Web, page: ClubPage, found: RoleView) -> Response[str]:
    return web.pages.show(request, "role.html", page.place("staff"), page.now, role=found)


async def _read(request: PageRequest) -> RoleFields:
    form = await request.form()
    ticked = {str(value) for value in form.getall("permission", [])}
    texts = await form_fields(request)
    return RoleFields(
        name=texts.get("name", ""),
        description=texts.get("description", ""),
        permissions=frozenset(permission for permission in Permission if permission in ticked),
        assignable_role_ids=await chosen_ids(request, "assignable"),
        provider_role_ids=frozenset(texts.get("provider_roles", "").split()),
    )


HANDLERS = (roles_page, new_role_page, make_role, role_page, save_role, ask_delete, delete)
